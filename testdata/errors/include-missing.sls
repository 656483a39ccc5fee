include:
  - wbe # error: there is no SLS "wbe" in environment base // did you mean "web"?
  - ....up # error: include "....up" leads out of the tree // each leading dot after the first goes up one directory
  - 5 # error: include holds 5, and the name of an SLS was expected // write each name as `- name`
  - . # error: include "." names no other file // write the file behind the dots
  - web..server # error: "web..server" is not a name of an SLS: a part of it is empty // a dot separates
