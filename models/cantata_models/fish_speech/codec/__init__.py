"""The codec: a streaming decoder and an encoder of recordings, of one file of weights."""
