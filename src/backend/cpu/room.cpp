// Keeps the room 'backend/cpu' a library while it is being filled.
