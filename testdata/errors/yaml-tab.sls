web:
  file.managed:
	- name: /x # error: found character '\t' that cannot start any token // indent with spaces, never with tabs
