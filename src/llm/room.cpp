// Keeps the room 'llm' a library while it is being filled.
