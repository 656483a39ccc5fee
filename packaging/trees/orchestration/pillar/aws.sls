# How AWS is reached. Without keyid and key the credentials are those of AWS's own tools.
aws_profile:
  region: us-east-1

orchestration:
  region_name: useast1
  zones: [us-east-1a, us-east-1b, us-east-1c]
  domain: example.com
  certificate: arn:aws:iam::123456789012:server-certificate/a-certificate
  logs: logs
  bucket: bootstrap
  prefix: deploy
  image: ami-0123456789abcdef0
  instance_type: c6i.large
  key_name: example-key
  # What `corpus bootstrap` takes. trust_root is the digest of root.json, agent_digest that of the package.
  bootstrap:
    store: s3://bootstrap/deploy
    agent: https://downloads.example.com/corpus-agent.deb
    agent_digest: sha256:0000000000000000000000000000000000000000000000000000000000000000
    trust_root: sha256:0000000000000000000000000000000000000000000000000000000000000000
    elb: true
