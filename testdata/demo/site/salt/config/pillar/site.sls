site:
  domain: {{ grains.get('instance', 'nobody') }}.example.com
