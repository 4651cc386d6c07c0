"""One model of vLLM's layers in several processes (tensor parallel): the stage's own, which is rank
0, and others that it starts. Each has a whole stage with its share of every layer, and takes the
same calls. So vLLM schedules the same steps everywhere, and its collectives meet."""
