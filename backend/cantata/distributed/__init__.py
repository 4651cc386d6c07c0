"""Several machines: replicas run models, edges serve them; links between them carry the sound.

Imported only when a cluster is asked for.
"""
