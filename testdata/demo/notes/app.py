"""Notes keeps lines of text in memory, and shows them."""
import flask

app = flask.Flask(__name__)
notes = []


@app.get("/")
def show():
    return flask.render_template_string("{% for n in notes %}{{ n }}\n{% else %}no notes\n{% endfor %}", notes=notes)


@app.post("/")
def add():
    notes.append(flask.request.get_data(as_text=True))
    return flask.jsonify(count=len(notes))
