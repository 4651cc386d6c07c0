"""The only exception tree.

    CantataError
    ├── InvalidRequest          the caller's input; `param` names the field
    │   ├── ModelNotFound
    │   ├── VoiceNotFound
    │   │   └── UploadNotFound
    │   ├── VoiceExists
    │   ├── VoicesFull          no more voices can be kept
    │   ├── ConsentMissing      nobody has answered for the use of a voice
    │   ├── ConsentRefused      a spoken consent is not what it has to be
    │   ├── InvalidMedia        a file that cannot be used, or not be fetched
    │   │   ├── InvalidAudio
    │   │   ├── InvalidImage
    │   │   └── InvalidVideo
    │   ├── ResponseNotFound
    │   ├── CallNotFound
    │   ├── SessionNotFound     no session waits for the client that comes back
    │   ├── EventsLost          a session cannot go on where its client is
    │   ├── InvalidDocument     a book that cannot be read
    │   ├── JobNotFound
    │   │   ├── FileNotKept
    │   │   └── BatchNotFound
    │   ├── JobEnded            a job that can no longer be cancelled
    │   │   └── BatchEnded
    │   ├── JobsFull            no more jobs or files can be kept
    │   ├── FileInUse           a batch still reads the file
    │   ├── LexiconNotFound
    │   ├── LexiconExists
    │   ├── LexiconsFull        no more lexicons can be kept
    │   ├── InvalidLexicon      a file that is no pronunciation lexicon
    │   ├── PayloadTooLarge
    │   ├── ContextFull         more than a model's memory of one request holds
    │   ├── Quarantined         the same request ended a process twice
    │   └── ProtocolViolation   a message out of order on a connection
    ├── Unauthorized            no API key, or an unknown one
    ├── Forbidden               not on this server, or not from that web site
    ├── StorageFailed           the disk does not give or delete a voice
    │   ├── JobsLocked          another program works on the folder of jobs
    │   └── NotStored           the disk is full, read-only or broken: it takes no upload
    ├── NotInstalled            an optional package that this needs is not there
    ├── ConfigError             a deployment file, plug-in or checkpoint that cannot be served
    ├── Overloaded              no capacity now; try again after `retry_after_s`
    ├── RequestFailed           one request's fault inside a stage; other requests continue
    │   └── ChunkTimeout        an edge stayed silent for too long
    └── StageDied               a stage process died, and its requests with it
        ├── StartFailed         a model could not be started, and is not tried again
        └── ReplicaLost         a replica is gone, and nobody could take over

`faults` carries them between processes.
"""

from __future__ import annotations

from typing import ClassVar


class CantataError(Exception):
    """Base of every error that Cantata raises on purpose."""

    code: ClassVar[str] = "internal_error"
    """Stable machine-readable name, as clients see it."""

    @property
    def message(self) -> str:
        """What went wrong, for a person."""
        return str(self.args[0]) if self.args else self.code


class InvalidRequest(CantataError):
    """The request is invalid."""

    code = "invalid_value"

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message, param)
        self.param = param

    def __str__(self) -> str:
        return self.message


class ModelNotFound(InvalidRequest):
    """No served model has that name."""

    code = "model_not_found"


class VoiceNotFound(InvalidRequest):
    """The model has no such voice."""

    code = "voice_not_found"


class UploadNotFound(VoiceNotFound):
    """No uploaded voice has that id or name."""


class VoiceExists(InvalidRequest):
    """A voice with this name exists."""

    code = "voice_exists"


class VoicesFull(InvalidRequest):
    """The limit of stored voices is reached."""

    code = "voices_full"


class ConsentMissing(InvalidRequest):
    """The use of a voice needs a consent that the request does not have."""

    code = "consent_required"


class ConsentRefused(InvalidRequest):
    """A spoken consent is of other words, or of another speaker."""

    code = "consent_refused"


class ResponseNotFound(InvalidRequest):
    """No kept response has that id."""

    code = "response_not_found"


class CallNotFound(InvalidRequest):
    """No open call has that id."""

    code = "call_not_found"


class SessionNotFound(InvalidRequest):
    """No open session can be resumed with that token."""

    code = "session_not_found"


class EventsLost(InvalidRequest):
    """A session cannot be resumed where its client is: the events since are not all kept."""

    code = "events_lost"


class InvalidDocument(InvalidRequest):
    """A book or another document cannot be read; the message says why."""

    code = "invalid_document"

    def __init__(self, message: str, param: str | None = "file") -> None:
        super().__init__(message, param)


class JobNotFound(InvalidRequest):
    """No kept job of this client has that id, or it has no such file."""

    code = "job_not_found"


class FileNotKept(JobNotFound):
    """No kept file of this client has that id."""

    code = "file_not_found"


class BatchNotFound(JobNotFound):
    """No kept batch of this client has that id."""

    code = "batch_not_found"


class JobEnded(InvalidRequest):
    """The job has ended."""

    code = "job_ended"


class BatchEnded(JobEnded):
    """The batch has ended."""

    code = "batch_ended"


class JobsFull(InvalidRequest):
    """The limit of kept jobs, batches or files is reached."""

    code = "jobs_full"


class FileInUse(InvalidRequest):
    """A batch still reads the file."""

    code = "file_in_use"


class LexiconNotFound(InvalidRequest):
    """No lexicon has that id or name."""

    code = "lexicon_not_found"


class LexiconExists(InvalidRequest):
    """A lexicon with this name exists."""

    code = "lexicon_exists"


class LexiconsFull(InvalidRequest):
    """The limit of stored lexicons is reached."""

    code = "lexicons_full"


class InvalidLexicon(InvalidRequest):
    """A pronunciation lexicon cannot be used; the message says why."""

    code = "invalid_lexicon"


class InvalidMedia(InvalidRequest):
    """A file of sound, an image or a video cannot be used; the message says why."""

    code = "invalid_media"


class InvalidAudio(InvalidMedia):
    """A recording cannot be used."""

    code = "invalid_audio"


class InvalidImage(InvalidMedia):
    """An image cannot be used."""

    code = "invalid_image"


class InvalidVideo(InvalidMedia):
    """A video cannot be used."""

    code = "invalid_video"


class PayloadTooLarge(InvalidRequest):
    """A file or body is over its limit."""

    code = "body_too_large"


class ContextFull(InvalidRequest):
    """A request needs more positions than a stage has for one."""

    code = "context_length_exceeded"


class Quarantined(InvalidRequest):
    """This exact request has ended a stage process, or a replica, twice; it is no longer
    accepted."""

    code = "quarantined"


class ProtocolViolation(InvalidRequest):
    """A message that the connection's state does not allow."""

    code = "protocol_violation"


class Unauthorized(CantataError):
    """The request has no valid API key."""

    code = "invalid_api_key"


class Forbidden(CantataError):
    """The server does not allow this, for anyone or for a page of that origin."""

    code = "forbidden"


class StorageFailed(CantataError):
    """A voice could not be written to disk or removed from it."""

    code = "storage_failed"


class NotStored(StorageFailed):
    """The disk rejects an upload."""


class JobsLocked(StorageFailed):
    """Another program works on the folder of jobs."""

    code = "jobs_locked"


class NotInstalled(CantataError):
    """An optional package is missing; names it, and the extra that brings it."""

    code = "not_installed"


class ConfigError(CantataError):
    """A deployment file, plug-in or checkpoint is not usable; says where and what is valid."""

    code = "invalid_config"


class Overloaded(CantataError):
    """The server is at capacity."""

    code = "rate_limit_exceeded"

    def __init__(self, message: str, retry_after_s: float = 1.0) -> None:
        super().__init__(message, retry_after_s)
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return self.message


class RequestFailed(CantataError):
    """A stage could not finish this request; other requests are unaffected."""

    code = "request_failed"


class ChunkTimeout(RequestFailed):
    """The request's next chunk did not arrive in time."""

    code = "chunk_timeout"


class StageDied(CantataError):
    """The stage process that held this request has ended."""

    code = "stage_died"


class StartFailed(StageDied):
    """A model could not be started, and this server does not try again."""

    code = "start_failed"


class ReplicaLost(StageDied):
    """The replica that held this request is gone, and no other replica could continue."""

    code = "replica_lost"


def get_first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error that ended a task group."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
