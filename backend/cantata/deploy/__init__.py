"""What `cantata deploy` puts together: models and options into applications on a Ray cluster, and
the processes that run there."""
