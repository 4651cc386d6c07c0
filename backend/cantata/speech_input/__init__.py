"""The parts of a spoken conversation other than speech itself: turn detection, transcription and
answers."""
