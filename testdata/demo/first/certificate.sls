
Ensure myapp has its certificate:
  file.exists:
    - name: /etc/myapp/tls.pem
