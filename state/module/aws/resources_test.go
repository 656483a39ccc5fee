package aws_test

import (
	"strings"
)

const alarmAttributes = "metric: CPUUtilization, namespace: AWS/EC2, statistic: Average, comparison: '>=', " +
	"threshold: 50.0, period: 300, evaluation_periods: 1, unit: null, description: d"

const netFixed = "instance_tenancy vpc_id vpc_name availability_zone route_table_name route_table_id subnet_id detach "

func resources() []resource {
	rule := "{ip_protocol: tcp, from_port: 80, to_port: 80, cidr_ip: 10.0.0.0/8}"
	policy := "{Version: '2012-10-17', Statement: [{Action: ['s3:Get*'], Effect: Allow, Resource: ['*']}]}"
	text := `'{"Version": "2012-10-17", "Statement": [{"Action": "s3:Put*", "Effect": "Allow", "Resource": "*"}]}'`
	trust := "{Version: '2012-10-17', Statement: [{Action: 'sts:AssumeRole', Effect: Allow, Principal: {Service: " +
		"lambda.amazonaws.com}}]}"
	lc := "{image_id: ami-12c6146b, instance_type: t3.micro"
	return []resource{
		{function: "boto_sqs.present", base: "{name: q, attributes: {DelaySeconds: 3, VisibilityTimeout: 60}}",
			drift: map[string]string{"attributes": "attributes: {DelaySeconds: 5, VisibilityTimeout: 30}"}},
		{function: "boto_sns.present", base: "{name: topic, subscriptions: []}",
			drift: map[string]string{}, fixed: "subscriptions"},
		{function: "boto_secgroup.present",
			base: "{name: g, description: d, rules: [" + rule + "], rules_egress: [], tags: {a: b}}", drift: map[string]string{
				"rules":          "rules: [{ip_protocol: tcp, from_port: 80, to_port: 81, cidr_ip: 10.0.0.0/8}]",
				"rules none":     "rules: []",
				"rules of group": "rules: [{ip_protocol: all, source_group_name: [g, other]}]",
				"rules_egress": "rules_egress: [{ip_protocol: udp, from_port: 53, to_port: 53, cidr_ip: [10.0.0.2/32, " +
					"10.0.0.3/32]}]",
				"tags": "tags: {c: d}",
			}, fixed: "description vpc_id vpc_name delete_ingress_rules delete_egress_rules"},
		{function: "boto_iam_role.present", base: "{name: r, policies: {p: " + policy + "}}",
			drift: map[string]string{
				"policies":         "policies: {p: " + strings.Replace(policy, "Get", "List", 1) + "}",
				"policies other":   "policies: {other: " + policy + "}",
				"policies as text": "policies: {p: " + text + "}",
				"policy_document":  "policy_document: " + trust,
				"policy_document as text": "policy_document: " + strings.NewReplacer("s3:Put*", "sts:AssumeRole", `"Resource": "*"`,
					`"Principal": {"Service": "lambda.amazonaws.com"}`).Replace(text),
			}, fixed: "path create_instance_profile delete_policies detach_policies managed_policies"},
		{function: "boto_cloudwatch_alarm.present", base: "{name: alarm, attributes: {" + alarmAttributes +
			", dimensions: {Q: [v]}, alarm_actions: ['arn:aws:sns:us-east-1:123456789012:a'], ok_actions: [], " +
			"insufficient_data_actions: []}}",
			drift: map[string]string{
				"attributes threshold": "attributes: {" + strings.Replace(alarmAttributes, "50.0", "60.5", 1) + "}",
				"attributes actions": "attributes: {" + alarmAttributes + ", alarm_actions: [], ok_actions: " +
					"['arn:aws:sns:us-east-1:123456789012:b'], insufficient_data_actions: ['arn:aws:sns:us-east-1:123456789012:c']}",
				"attributes metric":  "attributes: {" + strings.Replace(alarmAttributes, "CPUUtilization", "NetworkIn", 1) + "}",
				"attributes compare": "attributes: {" + strings.Replace(alarmAttributes, ">=", "<", 1) + "}",
				"attributes period":  "attributes: {" + strings.Replace(alarmAttributes, "300", "60", 1) + "}",
				"attributes several": "attributes: {" + strings.Replace(alarmAttributes,
					"evaluation_periods: 1", "evaluation_periods: 2", 1) + "}",
				"attributes describe": "attributes: {" + strings.Replace(alarmAttributes, "description: d", "description: e", 1) +
					"}",
				"attributes statistic": "attributes: {" + strings.Replace(alarmAttributes, "Average", "Maximum", 1) + "}",
				"attributes dimension": "attributes: {" + alarmAttributes + ", dimensions: {Q: [w]}}",
			}},
		{function: "boto_iam.user_present", base: "{name: u, policies: {p: " + policy + "}}",
			drift: map[string]string{"policies": "policies: {p: " +
				strings.Replace(policy, "Get", "List", 1) + ", o: " + policy + "}",
				"policies as text": "policies: {p: " + text + "}",
				"managed_policies": "managed_policies: [own]"}, fixed: "path users delete_policies password"},
		{function: "boto_iam.user_present", base: "{name: signs-in, password: A-long-Pass-word-1}",
			drift: map[string]string{}, fixed: "path users delete_policies policies managed_policies password"},
		{function: "boto_iam.account_policy", base: "{name: p, allow_users_to_change_password: true, hard_expiry: false, " +
			"max_password_age: 90, minimum_password_length: 12, password_reuse_prevention: 3, require_lowercase_characters: " +
			"true, require_numbers: true, require_symbols: true, require_uppercase_characters: true}",
			drift: map[string]string{"allow_users_to_change_password": "allow_users_to_change_password: false",
				"hard_expiry":      "hard_expiry: true",
				"max_password_age": "max_password_age: 60", "minimum_password_length": "minimum_password_length: 14",
				"password_reuse_prevention":    "password_reuse_prevention: 5",
				"require_lowercase_characters": "require_lowercase_characters: false",
				"require_numbers":              "require_numbers: false", "require_symbols": "require_symbols: false",
				"require_uppercase_characters": "require_uppercase_characters: false"}},
		{function: "boto_iam.server_cert_present", base: "{name: cert, public_key: '-----BEGIN CERTIFICATE-----', " +
			"private_key: '-----BEGIN PRIVATE KEY-----'}",
			drift: map[string]string{}, fixed: "public_key private_key cert_chain path"},
		{function: "boto_iam.group_present", base: "{name: g, policies: {p: " + policy + "}, users: []}",
			drift: map[string]string{"policies": "policies: {o: " + policy + "}",
				"policies as text": "policies: {p: " + text + "}",
				"users":            "users: [u]"},
			fixed: "path delete_policies managed_policies password"},
		{function: "boto_iam.policy_present", base: "{name: p, policy_document: " + policy + "}",
			drift: map[string]string{"policy_document": "policy_document: " + strings.Replace(policy, "Get", "List", 1),
				"policy_document as text": "policy_document: " + text}, fixed: "path description"},
		{function: "boto_iam.saml_provider_present", base: "{name: saml, saml_metadata_document: '<a>" + strings.Repeat("b",
			2000) + "</a>'}", drift: map[string]string{"saml_metadata_document": "saml_metadata_document: '<a>" +
			strings.Repeat("c", 2000) + "d</a>'"}},
		{function: "boto_kms.key_present", base: "{name: k, description: d, key_rotation: true, policy: " + policy + "}",
			drift: map[string]string{"description": "description: e", "key_rotation": "key_rotation: false",
				"enabled":        "enabled: false",
				"policy":         "policy: " + strings.Replace(policy, "Get", "List", 1),
				"policy as text": "policy: " + text}, fixed: "key_usage grants manage_grants"},
		{function: "boto_elbv2.create_target_group", base: "{name: tg, protocol: HTTP, port: 80}",
			drift: map[string]string{"health_check_protocol": "health_check_protocol: HTTPS",
				"health_check_port": "health_check_port: 81",
				"health_check_path": "health_check_path: /up", "health_check_interval_seconds": "health_check_interval_seconds: 20",
				"health_check_timeout_seconds": "health_check_timeout_seconds: 4",
				"healthy_threshold_count":      "healthy_threshold_count: 3",
				"unhealthy_threshold_count":    "unhealthy_threshold_count: 4"}, fixed: "protocol port vpc_id vpc_name"},
		{function: "boto_vpc.present", base: "{name: net, cidr_block: 10.9.0.0/16, tags: {a: b}}",
			drift: map[string]string{"dns_support": "dns_support: false", "dns_hostnames": "dns_hostnames: true",
				"tags": "tags: {c: d}"},
			fixed: netFixed + "cidr_block auto_assign_public_ipv4 routes subnet_ids subnet_names"},
		{function: "boto_vpc.subnet_present", base: "{name: sub, vpc_name: net, cidr_block: 10.9.1.0/24, " +
			"auto_assign_public_ipv4: false, tags: {a: b}}",
			drift: map[string]string{"auto_assign_public_ipv4": "auto_assign_public_ipv4: true", "tags": "tags: {c: d}"},
			fixed: netFixed + "cidr_block dns_support dns_hostnames routes subnet_ids subnet_names"},
		{function: "boto_secgroup.present", base: "{name: inner, description: d, vpc_name: net}",
			drift: map[string]string{"rules": "rules: [{ip_protocol: tcp, from_port: 1, to_port: 1, cidr_ip: 10.0.0.0/8}]"},
			fixed: "description vpc_id vpc_name rules_egress tags delete_ingress_rules delete_egress_rules"},
		{function: "boto_secgroup.present", base: "{name: inner2, description: d, vpc_name: net}", drift: map[string]string{},
			fixed: "description rules vpc_id vpc_name rules_egress tags delete_ingress_rules delete_egress_rules"},
		{function: "boto_vpc.internet_gateway_present", base: "{name: gate, vpc_name: net, tags: {a: b}}",
			drift: map[string]string{"tags": "tags: {c: d}"},
			fixed: netFixed + "cidr_block dns_support dns_hostnames auto_assign_public_ipv4 routes subnet_ids subnet_names"},
		{function: "boto_vpc.route_table_present", base: "{name: ways, vpc_name: net, routes: [{destination_cidr_block: " +
			"0.0.0.0/0, internet_gateway_name: gate}], subnet_names: [sub]}",
			drift: map[string]string{"routes": "routes: [{destination_cidr_block: 10.0.0.0/8, internet_gateway_name: gate}]",
				"subnet_names": "subnet_names: []"},
			fixed: netFixed + "cidr_block dns_support dns_hostnames auto_assign_public_ipv4 subnet_ids tags"},
		{function: "boto_vpc.nat_gateway_present", base: "{name: nat, subnet_name: sub}", drift: map[string]string{},
			fixed: "subnet_id subnet_name allocation_id wait_for_delete_retries"},
		{function: "boto_vpc.dhcp_options_present", base: "{name: dhcp, vpc_name: net, domain_name: example.com, " +
			"domain_name_servers: [10.9.0.2, 10.9.0.3], tags: {a: b}}",
			drift: map[string]string{"tags": "tags: {c: d}"},
			fixed: "dhcp_options_id vpc_id vpc_name domain_name domain_name_servers ntp_servers netbios_name_servers " +
				"netbios_node_type"},
		{function: "boto_vpc.present", base: "{name: net2, cidr_block: 10.10.0.0/16}", drift: map[string]string{},
			fixed: netFixed + "cidr_block dns_support dns_hostnames tags auto_assign_public_ipv4 routes subnet_ids " +
				"subnet_names"},
		{function: "boto_vpc.vpc_peering_connection_present", base: "{name: peers, conn_name: peer, requester_vpc_name: " +
			"net, peer_vpc_name: net2}", drift: map[string]string{},
			fixed: "conn_id conn_name requester_vpc_id requester_vpc_name peer_vpc_id peer_vpc_name peer_owner_id peer_region"},
		{function: "boto_vpc.accept_vpc_peering_connection", base: "{name: accepts, conn_name: peer}",
			drift: map[string]string{}, fixed: "conn_id conn_name"},
		{function: "boto_vpc.route_table_present", base: "{name: inside, vpc_name: net, routes: [{destination_cidr_block: " +
			"0.0.0.0/0, nat_gateway_subnet_name: sub}]}",
			drift: map[string]string{"routes": "routes: [{destination_cidr_block: 10.10.0.0/16, " +
				"vpc_peering_connection_name: peer}]"},
			fixed: netFixed + "cidr_block dns_support dns_hostnames auto_assign_public_ipv4 subnet_ids subnet_names tags"},
		{function: "boto_vpc.subnet_present", base: "{name: routed, vpc_name: net, cidr_block: 10.9.2.0/24, " +
			"route_table_name: ways}",
			drift: map[string]string{"route_table_name": "route_table_name: inside"},
			fixed: "instance_tenancy vpc_id vpc_name availability_zone route_table_id subnet_id detach cidr_block dns_support " +
				"dns_hostnames auto_assign_public_ipv4 routes subnet_ids subnet_names tags"},
		{function: "boto_route53.present", base: "{name: www.example.com., zone: example.com., record_type: A, value: " +
			"10.0.0.1, ttl: 60}",
			drift: map[string]string{"value": "value: [10.0.0.2, 10.0.0.3]", "ttl": "ttl: 300"},
			fixed: "zone record_type identifier wait_for_sync split_dns private_zone alias"},
		{function: "boto_lc.present", base: lc + ", name: lc, security_groups: [other], user_data: hello}",
			drift: map[string]string{
				"image_id": "image_id: ami-03cf127a", "instance_type": "instance_type: t3.large", "key_name": "key_name: k",
				"security_groups": "security_groups: [other, default]", "user_data": "user_data: bye",
				"cloud_init": "user_data: '', cloud_init: {scripts: {a: echo}, boothooks: {b: x}, cloud-config: {packages: [git]}}",
				"kernel_id":  "kernel_id: aki-1", "ramdisk_id": "ramdisk_id: ari-1",
				"block_device_mappings": "block_device_mappings: [/dev/sda1: {size: 20, volume_type: gp3, " +
					"delete_on_termination: true}]",
				"delete_on_termination":       "delete_on_termination: false, block_device_mappings: [/dev/sda1: {size: 20}]",
				"instance_monitoring":         "instance_monitoring: true",
				"spot_price":                  "spot_price: '0.1'",
				"instance_profile_name":       "instance_profile_name: r",
				"ebs_optimized":               "ebs_optimized: true",
				"associate_public_ip_address": "associate_public_ip_address: true",
			}, fixed: "vpc_id vpc_name bootstrap"},
		{function: "boto_elb.present",
			base: "{name: elb, availability_zones: [us-east-1a], listeners: [{elb_port: 80, instance_port: 80, elb_protocol: " +
				"HTTP}], health_check: {target: 'HTTP:80/', interval: 30}, attributes: {connection_draining: {enabled: false}}, " +
				"tags: {a: b}, security_groups: [other], cnames: [{name: elb.example.com., zone: example.com., ttl: 60}], " +
				"alarms: {cpu: {name: n, attributes: {" + alarmAttributes + "}}}}",
			drift: map[string]string{
				"listeners": "listeners: [{elb_port: 80, instance_port: 8080, elb_protocol: HTTP}, {elb_port: 22, " +
					"elb_protocol: TCP}]",
				"availability_zones": "availability_zones: [us-east-1b, us-east-1c]",
				"health_check": "health_check: {target: 'TCP:80', interval: 20, timeout: 4, healthy_threshold: 4, " +
					"unhealthy_threshold: 6}",
				"attributes": "attributes: {connection_draining: {enabled: true, timeout: 20}, cross_zone_load_balancing: " +
					"{enabled: true}, access_log: {enabled: true, s3_bucket_name: b, s3_bucket_prefix: p, emit_interval: 5}, " +
					"connecting_settings: {idle_timeout: 90}}",
				"tags": "tags: {c: d}", "security_groups": "security_groups: [default]",
				"cnames": "cnames: [{name: elb.example.com., zone: example.com., ttl: 90}]",
				"alarms": "alarms: {cpu: {name: n, attributes: {" + strings.Replace(alarmAttributes, "50.0", "60.5", 1) + "}}}",
				"listeners without policies": "policies: [{policy_name: cookie, policy_type: " +
					"LBCookieStickinessPolicyType, policy: {}}], " +
					"listeners: [{elb_port: 80, instance_port: 80, elb_protocol: HTTP, policies: []}]",
				"policies": "policies: [{policy_name: cookie, policy_type: LBCookieStickinessPolicyType, policy: {}}], " +
					"listeners: [{elb_port: 80, instance_port: 80, elb_protocol: HTTP, policies: [cookie]}]",
			}, fixed: "scheme subnets subnet_names wait_for_sync instance_ids instance_names backends"},
		{function: "boto_asg.present",
			base: "{name: asg, launch_config_name: asg, launch_config: [" + lc + "}], " +
				"availability_zones: [us-east-1a], min_size: 0, max_size: 2, " +
				"desired_capacity: 0, suspended_processes: [AddToLoadBalancer], tags: [{key: a, value: b, propagate_at_launch: " +
				"true}], default_cooldown: 300, health_check_type: EC2, health_check_period: 300, termination_policies: " +
				"[Default], scaling_policies: [{name: Up, adjustment_type: ChangeInCapacity, scaling_adjustment: 1, cooldown: " +
				"60}], scheduled_actions: {night: {desired_capacity: 0, recurrence: '0 9 * * 1-5'}}, load_balancers: [elb], " +
				"alarms: {cpu: {attributes: {" + alarmAttributes + "}}}}",
			drift: map[string]string{
				"min_size": "min_size: 1, desired_capacity: 1", "max_size": "max_size: 3",
				"desired_capacity":  "desired_capacity: 1",
				"health_check_type": "health_check_type: ELB", "health_check_period": "health_check_period: 60",
				"availability_zones":  "availability_zones: [us-east-1b]",
				"suspended_processes": "suspended_processes: [AlarmNotification]",
				"tags":                "tags: [{key: a, value: c, propagate_at_launch: false}]",
				"scaling_policies": "scaling_policies: [{name: Up, adjustment_type: ChangeInCapacity, scaling_adjustment: " +
					"2, cooldown: 90}, {name: Down, adjustment_type: ChangeInCapacity, scaling_adjustment: -1}]",
				"scheduled_actions": "scheduled_actions: {night: {desired_capacity: 1, min_size: 0, max_size: 1, recurrence: " +
					"'0 19 * * 1-5'}}",
				"launch_config":  "launch_config: [{image_id: ami-12c6146b, instance_type: t3.large}]",
				"load_balancers": "load_balancers: [spare]",
				"alarms": "alarms: {cpu: {attributes: {" + strings.Replace(alarmAttributes, "50.0", "60.5", 1) +
					"}}}",
				"instance_profile_name": "instance_profile_name: r",
			}, fixed: "default_cooldown termination_policies launch_config_name placement_group vpc_zone_identifier " +
				"subnet_names target_group_arns notification_arn notification_types"},
		{function: "boto_dynamodb.present",
			base: "{name: t, hash_key: id, hash_key_data_type: S, range_key: at, range_key_data_type: N, " +
				"read_capacity_units: 1, write_capacity_units: 2, global_indexes: [index: [{name: g}, {hash_key: other}, " +
				"{hash_key_data_type: S}, {read_capacity_units: 1}, {write_capacity_units: 1}]], alarms: {w: {name: n, " +
				"attributes: {metric: ConsumedWriteCapacityUnits, namespace: AWS/DynamoDB, statistic: Sum, comparison: '>=', " +
				"threshold_percent: 0.75, period: 300, evaluation_periods: 2, unit: Count, description: d}}}}",
			drift: map[string]string{"read_capacity_units": "read_capacity_units: 5",
				"write_capacity_units": "write_capacity_units: 5",
				"global_indexes": "global_indexes: [index: [{name: g}, {hash_key: other}, {hash_key_data_type: S}, " +
					"{read_capacity_units: 3}, {write_capacity_units: 4}]]",
				"alarms": "alarms: {w: {name: n, attributes: {metric: ConsumedWriteCapacityUnits, namespace: AWS/DynamoDB, " +
					"statistic: Sum, comparison: '>=', threshold_percent: 0.3, period: 300, evaluation_periods: 2, unit: Count, " +
					"description: d}}}"},
			fixed: "table_name hash_key hash_key_data_type range_key range_key_data_type local_indexes"},
		{function: "boto_s3_bucket.present",
			base: "{name: b, Bucket: a-bucket, ACL: {GrantRead: 'id=\"them\"'}, CORSRules: [{AllowedMethods: [GET], " +
				"AllowedOrigins: ['*']}], LifecycleConfiguration: [{ID: old, Prefix: logs/, Status: Enabled, Expiration: " +
				"{Days: 30}}], Logging: {}, NotificationConfiguration: {}, Policy: {Version: '2012-10-17', Statement: [{" +
				"Effect: Allow, Principal: {AWS: 'arn:aws:iam::123456789012:root'}, Action: 's3:GetObject', Resource: " +
				"'arn:aws:s3:::a-bucket/*'}]}, Tagging: {a: b}, Versioning: {Status: Enabled}, Website: {IndexDocument: " +
				"{Suffix: index.html}}}",
			drift: map[string]string{"ACL": "ACL: {ACL: private}", "CORSRules": "CORSRules: [{AllowedMethods: [GET, PUT], " +
				"AllowedOrigins: ['*'], MaxAgeSeconds: 60}]",
				"CORSRules gone": "CORSRules: []",
				"LifecycleConfiguration": "LifecycleConfiguration: [{ID: old, Prefix: logs/, Status: Enabled, Expiration: " +
					"{Days: 60}}]",
				"NotificationConfiguration": "NotificationConfiguration: {QueueConfigurations: [{Id: q, QueueArn: " +
					"'arn:aws:sqs:us-east-1:123456789012:q', Events: ['s3:ObjectCreated:*']}]}",
				"Policy": "Policy: {Version: '2012-10-17', Statement: [{Effect: Deny, Principal: '*', Action: " +
					"'s3:GetObject', Resource: 'arn:aws:s3:::a-bucket/*'}]}",
				"Policy gone": "Policy: {}", "Tagging": "Tagging: {a: c, d: e}", "Versioning": "Versioning: {Status: Suspended}",
				"Website": "Website: {IndexDocument: {Suffix: other.html}, ErrorDocument: {Key: e.html}}",
				"Logging": "Logging: {TargetBucket: logs, TargetPrefix: a/}"},
			fixed: "Bucket LocationConstraint Replication RequestPayment"},
		{function: "boto_elasticache.subnet_group_present", base: "{name: cache-net, subnet_names: [sub], description: d}",
			drift: map[string]string{}, fixed: "subnet_ids subnet_names description tags"},
		{function: "boto_elasticache.present", base: "{name: cache, engine: redis, cache_node_type: cache.t3.micro, " +
			"num_cache_nodes: 1}", drift: map[string]string{},
			fixed: "engine cache_node_type num_cache_nodes preferred_availability_zone port cache_parameter_group_name " +
				"cache_security_group_names replication_group_id auto_minor_version_upgrade security_group_ids " +
				"cache_subnet_group_name engine_version notification_topic_arn preferred_maintenance_window wait"},
		{function: "boto_ec2.key_present",
			base: "{name: pair, upload_public: ssh-ed25519 " +
				"AAAAC3NzaC1lZDI1NTE5AAAAIFbOJbI0r6qtWnmkuxefmL1+NyGO52mEvk6589rXTFLo}", drift: map[string]string{},
			fixed: "save_path upload_public"},
		{function: "boto_ec2.instance_present", base: "{name: i, image_id: ami-03cf127a, instance_type: t2.micro, " +
			"security_group_names: [other], tags: {a: b}, disable_api_termination: false, " +
			"instance_initiated_shutdown_behavior: stop, attributes: {sourceDestCheck: true}, target_state: running, " +
			"monitoring_enabled: false}",
			drift: map[string]string{"tags": "tags: {c: d}", "security_group_names": "security_group_names: [default]",
				"disable_api_termination":              "disable_api_termination: true",
				"instance_initiated_shutdown_behavior": "instance_initiated_shutdown_behavior: terminate",
				"attributes":                           "attributes: {sourceDestCheck: false}",
				"target_state":                         "target_state: stopped"},
			fixed: "image_owners " +
				"instance_name instance_id image_id image_name key_name security_groups security_group_ids user_data " +
				"instance_type placement kernel_id ramdisk_id vpc_id vpc_name monitoring_enabled subnet_id subnet_name " +
				"private_ip_address block_device_map placement_group client_token tenancy instance_profile_arn " +
				"instance_profile_name ebs_optimized network_interface_name network_interface_id public_ip allocation_id " +
				"allocate_eip"},
		{function: "boto_ec2.volume_present", base: "{name: v, instance_name: i, device: /dev/sdf, size: 10, " +
			"volume_type: gp2}",
			drift: map[string]string{}, fixed: "volume_name volume_id instance_name instance_id device size snapshot_id " +
				"volume_type iops encrypted kms_key_id"},
		{function: "boto_ec2.volumes_tagged", base: "{name: tagged, tag_maps: [{filters: {instance_name: i}, tags: {role: " +
			"data}}]}",
			drift: map[string]string{"tag_maps": "tag_maps: [{filters: {instance_name: i}, tags: {role: root}}]"},
			fixed: "authoritative"},
		{function: "boto_ec2.eni_present", base: "{name: nic, subnet_name: sub, groups: [inner], source_dest_check: true, " +
			"description: d}",
			drift: map[string]string{"groups": "groups: [inner2]", "source_dest_check": "source_dest_check: false",
				"description": "description: e"},
			fixed: "subnet_id subnet_name private_ip_address allocate_eip arecords description"},
		{function: "boto_ec2.snapshot_created", base: "{name: s, ami_name: image-of-i, instance_name: i}",
			drift: map[string]string{}, fixed: "ami_name instance_name wait_until_available wait_timeout_seconds"},
	}
}
