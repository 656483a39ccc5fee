package aws

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/compute"
	"github.com/corpus-agent/corpus-agent/state/module/aws/dns"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/module/aws/storage"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// named returns a function that takes the name of a resource and answers with the result of ask.
func (q asked) named(service, argument string, ask func(ctx context.Context, a *cloud.Account,
	name string) (any, error)) *function.Function {
	return function.Of(argument+reach,
		func(ctx context.Context, name, region, key, keyID string, profile any) (any, error) {
			a, err := q.account(ctx, service, region, key, keyID, profile)
			if err != nil {
				return nil, err
			}
			return ask(ctx, a, name)
		})
}

// is reports whether a resource was found.
func is[T any](has *T, err error) (any, error) { return has != nil, err }

// questions returns the functions that describe resources by name.
func (q asked) questions() function.Table {
	return function.Table{
		"boto_asg.get_config":    q.named("asg", "name", asgConfig),
		"boto_asg.get_instances": q.instancesOfGroup(),
		"boto_asg.launch_configuration_exists": q.named("asg", "name",
			func(ctx context.Context, a *cloud.Account, name string) (any, error) {
				return is(compute.TemplateOf(ctx, a, name))
			}),
		"boto_asg.get_scaling_policy_arn": q.scalingPolicyARN(),
		"boto_cloudwatch.get_alarm":       q.named("cloudwatch", "name", alarmConfig),
		"boto_dynamodb.exists": q.named("dynamodb", "table_name",
			func(ctx context.Context, a *cloud.Account, name string) (any, error) {
				return is(storage.DescribeTable(ctx, a, name))
			}),
		"boto_dynamodb.describe": q.named("dynamodb", "table_name",
			func(ctx context.Context, a *cloud.Account, name string) (any, error) {
				has, err := storage.DescribeTable(ctx, a, name)
				if has == nil || err != nil {
					return value.NewMap(), err
				}
				plain, err := cloud.FromSDK(has)
				return value.NewMap("Table", plain), err
			}),
		"boto_ec2.exists":         q.instances("exists"),
		"boto_ec2.find_instances": q.instances("find"),
		"boto_ec2.get_id":         q.instances("id"),
		"boto_ec2.get_key":        q.named("ec2", "key_name", keyPair),
		"boto_elasticache.exists": q.named("elasticache", "name",
			func(ctx context.Context, a *cloud.Account, name string) (any, error) {
				return is(storage.DescribeCache(ctx, a, name))
			}),
		"boto_elasticache.subnet_group_exists": q.named("elasticache", "name",
			func(ctx context.Context, a *cloud.Account, name string) (any, error) {
				return is(storage.DescribeCacheSubnets(ctx, a, name))
			}),
		"boto_elasticache.group_exists": q.named("elasticache", "name",
			func(ctx context.Context, a *cloud.Account, name string) (any, error) {
				return is(storage.DescribeReplicas(ctx, a, name))
			}),
		"boto_elasticache.get_config":      q.named("elasticache", "name", cacheConfig),
		"boto_elb.get_attributes":          q.named("elb", "name", balancerAttributes),
		"boto_elb.get_health_check":        q.named("elb", "name", balancerHealth),
		"boto_elb.get_instance_health":     q.named("elb", "name", instanceHealth),
		"boto_iam.describe_role":           q.named("iam", "name", roleConfig),
		"boto_iam.instance_profile_exists": q.named("iam", "name", profileExists),
		"boto_iam.get_user":                q.named("iam", "user_name", memberConfig("user")),
		"boto_iam.get_group":               q.named("iam", "group_name", memberConfig("group")),
		"boto_kms.key_exists":              q.named("kms", "key_id", keyExists),
		"boto_route53.get_record":          q.record(),
		"boto_route53.zone_exists": q.named("route53", "zone",
			func(ctx context.Context, a *cloud.Account, name string) (any, error) {
				id, _, err := dns.ZoneOf(ctx, a, name, false)
				return id != "", err
			}),
		"boto_s3_bucket.exists": q.named("s3", "Bucket", func(ctx context.Context, a *cloud.Account, name string) (any,
			error) {
			there, _, err := storage.BucketThere(ctx, a, name)
			return value.NewMap("exists", there), err
		}),
		"boto_secgroup.convert_to_group_ids": q.groupsByName(),
		"boto_vpc.describe":                  q.vpcDescription(),
		"boto_vpc.describe_subnets":          q.subnetDescriptions(),
		"boto_vpc.subnet_exists":             q.network("subnet"),
		"boto_vpc.route_table_exists":        q.network("route_table"),
	}
}

// keyPair returns the name and the fingerprint of a key pair, or false if there is none.
func keyPair(ctx context.Context, a *cloud.Account, name string) (any, error) {
	out, err := network.EC2Of(a).DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{KeyNames: []string{name}})
	if cloud.HasCode(err, "InvalidKeyPair.NotFound") || err == nil && len(out.KeyPairs) == 0 {
		return false, nil
	}
	if err != nil {
		return nil, cloud.Failed("reading key pair", name, err)
	}
	return value.NewList(name, sdk.ToString(out.KeyPairs[0].KeyFingerprint)), nil
}
