"""Notes keeps lines of text in memory, and shows them."""
import pathlib

import flask

app = flask.Flask(__name__)
running = pathlib.Path(__file__).with_name("VERSION").read_text()  # at the start: what is current may move
notes = []


@app.get("/")
def show():
    return flask.render_template_string("{% for n in notes %}{{ n }}\n{% else %}no notes\n{% endfor %}", notes=notes)


@app.get("/version")
def version():
    return "notes " + running


@app.post("/")
def add():
    notes.append(flask.request.get_data(as_text=True))
    return flask.jsonify(count=len(notes))
