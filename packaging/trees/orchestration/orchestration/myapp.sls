# Everything that one environment of the service myapp lives in. Its names follow one convention:
# service-instance-region, such as myapp-testing-useast1, which is also what a host derives from its group.
#
#     corpus orchestrate --tree packaging/trees/orchestration orchestration.myapp --set service_instance=testing --test

{% set service = 'myapp' %}
{% set instance = grains.get('service_instance', 'testing') %}
{% set aws = pillar['orchestration'] %}
{% set cluster = service ~ '-' ~ instance ~ '-' ~ aws.region_name %}

Ensure {{ service }} security group exists:
  boto_secgroup.present:
    - name: {{ service }}
    - description: {{ service }} security group
    - rules:
        - ip_protocol: tcp
          from_port: 80
          to_port: 80
          source_group_name: {{ service }}-elb
    - profile: aws_profile
    - require:
        - boto_secgroup: Ensure {{ service }}-elb security group exists

Ensure {{ service }}-elb security group exists:
  boto_secgroup.present:
    - name: {{ service }}-elb
    - description: load balancers of {{ service }}
    - rules:
        - ip_protocol: tcp
          from_port: 80
          to_port: 80
          cidr_ip: 0.0.0.0/0
        - ip_protocol: tcp
          from_port: 443
          to_port: 443
          cidr_ip: 0.0.0.0/0
    - profile: aws_profile

# What a host of the service may do: what docs/buckets.md lists for a host that uploads reports and is in rollouts, and
# enter and leave its own load balancer. The hosts of the group share the role, so each of them may write what the others
# of this group may, and nothing of other groups; a key that a host registered can not be written again. The ID of a
# rollout is 24 question marks, since * would match slashes, too.
{% set store = 'arn:aws:s3:::' ~ aws.bucket ~ '/' ~ aws.prefix %}
{% set rollouts = [service ~ '/' ~ instance, 'base/' ~ aws.get('base_channel', 'production')] %}
Ensure {{ cluster }} iam role exists:
  boto_iam_role.present:
    - name: {{ cluster }}
    - policies:
        {{ cluster }}-deploy:
          Version: '2012-10-17'
          Statement:
            - Action: ['s3:GetObject']
              Effect: Allow
              Resource:
                - '{{ store }}/metadata/*'
                - '{{ store }}/deploy/base/*'
                - '{{ store }}/deploy/{{ service }}/*'
                - '{{ store }}/hosts/{{ cluster }}-*'
                - '{{ store }}/rollouts/{{ service }}/*'
                - '{{ store }}/rollouts/base/*'
            - Action: ['s3:ListBucket']
              Effect: Allow
              Resource: ['arn:aws:s3:::{{ aws.bucket }}']
              Condition:
                StringLike:
                  's3:prefix':
                    - '{{ aws.prefix }}/rollouts/{{ service }}/*'
                    - '{{ aws.prefix }}/rollouts/base/*'
            - Action: ['s3:PutObject']
              Effect: Allow
              Resource: ['{{ store }}/hosts/{{ cluster }}-*']
              Condition:
                'Null':
                  's3:if-none-match': 'false'
            - Action: ['s3:PutObject']
              Effect: Allow
              Resource:
                - '{{ store }}/reports/{{ service }}/{{ cluster }}-*'
                {% for channel in rollouts %}
                - '{{ store }}/rollouts/{{ channel }}/????????????????????????/results/{{ cluster }}-*'
                - '{{ store }}/rollouts/{{ channel }}/????????????????????????/halts/{{ cluster }}-*'
                - '{{ store }}/rollouts/{{ channel }}/????????????????????????/leases/*'
                {% endfor %}
            - Action: ['s3:PutObject', 's3:DeleteObject']
              Effect: Allow
              Resource: ['{{ store }}/fleet/{{ service }}/{{ cluster }}-*']
            - Action:
                - 'elasticloadbalancing:RegisterInstancesWithLoadBalancer'
                - 'elasticloadbalancing:DeregisterInstancesFromLoadBalancer'
              Effect: Allow
              Resource: 'arn:aws:elasticloadbalancing:*:*:loadbalancer/{{ cluster }}'
            - Action:
                - 'ec2:DescribeTags'
                - 'autoscaling:DescribeAutoScalingInstances'
                - 'autoscaling:DescribeAutoScalingGroups'
                - 'elasticloadbalancing:DescribeInstanceHealth'
              Effect: Allow
              Resource: ['*']
        {{ service }}-{{ instance }}-sqs:
          Version: '2012-10-17'
          Statement:
            - Sid: {{ service }}{{ instance }}sqs1
              Action:
                - 'sqs:ChangeMessageVisibility'
                - 'sqs:DeleteMessage'
                - 'sqs:GetQueueAttributes'
                - 'sqs:GetQueueUrl'
                - 'sqs:ListQueues'
                - 'sqs:ReceiveMessage'
                - 'sqs:SendMessage'
              Effect: Allow
              Resource: ['arn:aws:sqs:*:*:{{ service }}-{{ instance }}-*']
    - profile: aws_profile

Ensure {{ service }}-{{ instance }} security group exists:
  boto_secgroup.present:
    - name: {{ service }}-{{ instance }}
    - description: {{ service }}-{{ instance }} security group
    - profile: aws_profile

Ensure {{ cluster }} elb exists:
  boto_elb.present:
    - name: {{ cluster }}
    - availability_zones: {{ aws.zones | json }}
    - security_groups:
        - {{ service }}-elb
    - listeners:
        - elb_port: 80
          instance_port: 80
          elb_protocol: HTTP
        - elb_port: 443
          instance_port: 80
          elb_protocol: HTTPS
          instance_protocol: HTTP
          certificate: '{{ aws.certificate }}'
    - health_check:
        target: 'HTTP:80/'
    - attributes:
        access_log:
          enabled: true
          s3_bucket_name: {{ aws.logs }}
          s3_bucket_prefix: {{ cluster }}
          emit_interval: 5
    - cnames:
        - name: {{ service }}-{{ instance }}.{{ aws.domain }}
          zone: {{ aws.domain }}
          ttl: 60
    - profile: aws_profile

{% for queue in ['example-queue-1', 'example-queue-2'] %}
Ensure {{ service }}-{{ instance }}-{{ queue }} sqs queue is present:
  boto_sqs.present:
    - name: {{ service }}-{{ instance }}-{{ queue }}
    - profile: aws_profile
{% endfor %}

Ensure {{ cluster }} asg exists:
  boto_asg.present:
    - name: {{ cluster }}
    - launch_config_name: {{ cluster }}
    - launch_config:
        - image_id: {{ aws.image }}
        - key_name: {{ aws.key_name }}
        - security_groups:
            - {{ service }}
            - {{ service }}-{{ instance }}
        - instance_type: {{ aws.instance_type }}
        - instance_monitoring: true
        - instance_profile_name: {{ cluster }}
        # The user data of `corpus bootstrap`: installs the agent, which deploys and then enters the load balancer.
        - bootstrap: {{ aws.bootstrap | json }}
    - availability_zones: {{ aws.zones | json }}
    - suspended_processes:
        - AddToLoadBalancer
    - min_size: 3
    - max_size: 30
    - load_balancers:
        - {{ cluster }}
    - scaling_policies:
        - name: ScaleDown
          adjustment_type: ChangeInCapacity
          scaling_adjustment: -1
          cooldown: 1800
        - name: ScaleUp
          adjustment_type: ChangeInCapacity
          scaling_adjustment: 5
          cooldown: 1800
    - tags:
        - key: Name
          value: {{ cluster }}
          propagate_at_launch: true
    - profile: aws_profile

{% for direction, comparison, threshold, policy in [('up', '>=', 50.0, 'ScaleUp'), ('down', '<=', 10.0, 'ScaleDown')] %}
autoscale {{ direction }} alarm of {{ cluster }}:
  boto_cloudwatch_alarm.present:
    - name: {{ cluster }}-asg-{{ direction }}-CPU-Utilization
    - attributes:
        metric: CPUUtilization
        namespace: AWS/EC2
        statistic: Average
        comparison: '{{ comparison }}'
        threshold: {{ threshold }}
        period: 300
        evaluation_periods: 1
        unit: null
        description: ''
        dimensions:
          AutoScalingGroupName:
            - {{ cluster }}
        alarm_actions:
          - 'scaling_policy:{{ cluster }}:{{ policy }}'
        insufficient_data_actions: []
        ok_actions: []
    - profile: aws_profile
{% endfor %}
