// Keeps the room 'dtype' a library while it is being filled.
