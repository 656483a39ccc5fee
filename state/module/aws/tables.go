package aws

import "github.com/corpus-agent/corpus-agent/state/module"

// Tables are the state functions of AWS, by the names of Salt's states.
func Tables(c *Cloud) module.Registry {
	return module.Registry{
		"aws_sqs":               sqsTable(c),
		"boto_asg":              asgTable(c),
		"boto_cloudwatch_alarm": alarmTable(c),
		"boto_dynamodb":         dynamodbTable(c),
		"boto_ec2":              ec2Table(c),
		"boto_elasticache":      elasticacheTable(c),
		"boto_elb":              elbTable(c),
		"boto_iam":              iamTable(c),
		"boto_iam_role":         iamRoleTable(c),
		"boto_lc":               lcTable(c),
		"boto_route53":          route53Table(c),
		"boto_s3_bucket":        s3BucketTable(c),
		"boto_secgroup":         secgroupTable(c),
		"boto_sns":              snsTable(c),
		"boto_sqs":              sqsTable(c),
		"boto_vpc":              vpcTable(c),
		"boto_elbv2":            elbv2Table(c),
		"boto_kms":              kmsTable(c),
	}
}
