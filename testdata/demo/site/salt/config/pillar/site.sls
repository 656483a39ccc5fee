site:
  domain: {{ grains.service_instance }}.example.com
