// Package aws lists the boto_* states, which make AWS resources such as security groups, load balancers and auto
// scaling groups, and the functions with which templates read such resources. The states take the arguments of the
// states of Salt 3006 with the same names. They are in the packages below: network, compute, scaling, balancing,
// alarms, dns, identity, storage and messages. Package cloud has what all of them need.
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

// Tables returns the state functions of AWS by the names of the modules of Salt.
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
