{% for name in ['one', 'two: three'] %}
{{ name }}: wrong: twice # error: mapping values are not allowed here // put a value that holds `: ` in quotes, and check the indentation of this line # error: mapping values are not allowed here // put a value that holds `: ` in quotes, and check the indentation of this line
{% endfor %}
