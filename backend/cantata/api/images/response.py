"""What whole and streamed answers with pictures share."""

from __future__ import annotations

import asyncio
import logging
import time
from abc import abstractmethod
from collections.abc import Sequence

from cantata.api.context import ApiContext
from cantata.api.http.streamed_response import Body, ClientStalled, StreamedResponse
from cantata.api.images.order import ImageOrder
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.pictures import ImageRequest
from cantata.media.images import Pixels
from cantata.media.request_media import RequestMedia

logger = logging.getLogger(__name__)


class ImagesResponse(StreamedResponse):
    """The pictures of one request. What fails before the head is sent is an HTTP error, and a
    client that leaves ends all of them."""

    def __init__(self, context: ApiContext, order: ImageOrder, media_type: str) -> None:
        super().__init__(media_type, {}, context.settings.stall_timeout_s)
        self.context = context
        self.order = order

    async def stream(self, request_id: str, body: Body) -> None:
        """Write the answer.

        Raises:
            CantataError: it failed before its first bytes.
        """
        with self.context.media.request() as media:
            references = await self._references(media)
            try:
                await self.answer(self.order.requests(references, body.asked_at), body)
            except ClientStalled:
                logger.info("the client stopped reading; its pictures are aborted")

    @abstractmethod
    async def answer(self, requests: Sequence[ImageRequest], body: Body) -> None:
        """Draw these, and write them."""

    async def _references(self, media: RequestMedia) -> list[Pixels]:
        try:
            async with asyncio.timeout(media.work_s):
                return [await media.image(sent.data, sent.param) for sent in self.order.sent]
        except TimeoutError:
            raise InvalidRequest(
                f"image: the files take longer than {media.work_s:g} s to decode; send fewer or "
                "smaller ones",
                "image",
            ) from None


def unix_time() -> int:
    """Now, as answers say it."""
    return int(time.time())
