"""The stages of a checkpoint in this layout, as the contract has them, and the request builder."""
