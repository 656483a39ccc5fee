def get_colors(use=True, theme=None):
    names = ("BLACK", "DARK_GRAY", "RED", "LIGHT_RED", "GREEN", "LIGHT_GREEN", "YELLOW", "LIGHT_YELLOW", "BLUE", "LIGHT_BLUE",
             "MAGENTA", "LIGHT_MAGENTA", "CYAN", "LIGHT_CYAN", "LIGHT_GRAY", "WHITE", "DEFAULT_COLOR", "ENDC")
    return {name: "" for name in names}
