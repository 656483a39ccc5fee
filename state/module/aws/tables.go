// Package aws lists the boto_* states, which make what hosts live in, such as security groups, load balancers and auto
// scaling groups, and the functions with which templates read them. The states take the arguments of Salt 3006's states
// of these names and are in the packages below: network, compute, scaling, balancing, alarms, dns, identity, storage
// and messages. What all of them need is in cloud.
package aws

import (
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/alarms"
	"github.com/corpus-agent/corpus-agent/state/module/aws/balancing"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/compute"
	"github.com/corpus-agent/corpus-agent/state/module/aws/dns"
	"github.com/corpus-agent/corpus-agent/state/module/aws/identity"
	"github.com/corpus-agent/corpus-agent/state/module/aws/messages"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/module/aws/scaling"
	"github.com/corpus-agent/corpus-agent/state/module/aws/storage"
)

// Cloud reaches AWS for all states and functions of a run.
type Cloud = cloud.Cloud

// Tables are the state functions of AWS, by the names of Salt's states.
func Tables(c *Cloud) module.Registry {
	return module.Registry{
		"aws_sqs":               messages.SQSTable(c),
		"boto_asg":              scaling.ASGTable(c),
		"boto_cloudwatch_alarm": alarms.AlarmTable(c),
		"boto_dynamodb":         storage.DynamoDBTable(c),
		"boto_ec2":              compute.EC2Table(c),
		"boto_elasticache":      storage.ElasticacheTable(c),
		"boto_elb":              balancing.ELBTable(c),
		"boto_iam":              identity.IAMTable(c),
		"boto_iam_role":         identity.IAMRoleTable(c),
		"boto_lc":               compute.LCTable(c),
		"boto_route53":          dns.Route53Table(c),
		"boto_s3_bucket":        storage.S3BucketTable(c),
		"boto_secgroup":         network.SecgroupTable(c),
		"boto_sns":              messages.SNSTable(c),
		"boto_sqs":              messages.SQSTable(c),
		"boto_vpc":              network.VPCTable(c),
		"boto_elbv2":            balancing.ELBv2Table(c),
		"boto_kms":              identity.KMSTable(c),
	}
}
