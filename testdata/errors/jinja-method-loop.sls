{% set site = {'keys': ['x']} %}
{% for key in site.keys %} # error: is not iterable // write ['keys'] for the key
{% endfor %}
