"""The side that listeners connect to: the models of replicas behind the contract's services."""
