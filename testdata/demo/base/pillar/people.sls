people:
  ada:
    fullname: Ada Example
    groups: [adm]
    root: True
  grace:
    fullname: Grace Example
