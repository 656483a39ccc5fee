include:
  - web/init.sls # error: there is no SLS "web/init.sls" in environment base // write web: an SLS is named by its path
  - srv/salt/web.sls # error: there is no SLS "srv/salt/web.sls" in environment base // write web:
