"""One pair's answers made ready to be shown: marked text, differences, the command that runs it again."""
