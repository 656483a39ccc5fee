{% from "web/mpa.jinja" import web %} # error: there is no template web/mpa.jinja // did you mean "web/map.jinja"?
