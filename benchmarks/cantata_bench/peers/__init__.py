"""`cantata bench peers`: this server beside another program's own, in turns on one machine."""
