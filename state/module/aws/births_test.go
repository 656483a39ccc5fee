package aws_test

import (
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/elasticache"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// stamp sets, in an answer, what tells a resource from an earlier one of its name: an ID, or the time of its creation.
// Some imitations find resources by their names alone.
func (i *imitation) stamp(answer any) {
	id, at := fmt.Sprintf("born-%d", i.born), time.Unix(int64(1_700_000_000+i.born), 0)
	switch out := answer.(type) {
	case *ec2.DescribeKeyPairsOutput:
		for n := range out.KeyPairs {
			out.KeyPairs[n].KeyPairId = &id
		}
	case *ec2.DescribeLaunchTemplateVersionsOutput:
		for n := range out.LaunchTemplateVersions {
			out.LaunchTemplateVersions[n].LaunchTemplateId = &id
		}
	case *elb.DescribeLoadBalancersOutput:
		for n := range out.LoadBalancerDescriptions {
			out.LoadBalancerDescriptions[n].CreatedTime = &at
		}
	case *elbv2.DescribeTargetGroupsOutput:
		for n, g := range out.TargetGroups {
			if i.born > 0 {
				arn := *g.TargetGroupArn + "/" + id
				out.TargetGroups[n].TargetGroupArn = &arn
			}
		}
	case *autoscaling.DescribeAutoScalingGroupsOutput:
		for n := range out.AutoScalingGroups {
			out.AutoScalingGroups[n].AutoScalingGroupARN = &id
		}
	case *cloudwatch.DescribeAlarmsOutput:
		for n := range out.MetricAlarms {
			out.MetricAlarms[n].AlarmConfigurationUpdatedTimestamp = &at
		}
	case *dynamodb.DescribeTableOutput:
		out.Table.CreationDateTime = &at
	case *sqs.GetQueueAttributesOutput:
		out.Attributes["CreatedTimestamp"] = strconv.Itoa(i.born)
	case *s3.ListBucketsOutput:
		for n := range out.Buckets {
			out.Buckets[n].CreationDate = &at
		}
	default:
		stampMembers(answer, id, at)
	}
}

func stampMembers(answer any, id string, at time.Time) {
	switch out := answer.(type) {
	case *iam.GetAccountAuthorizationDetailsOutput:
		for n := range out.RoleDetailList {
			out.RoleDetailList[n].RoleId = &id
		}
		for n := range out.UserDetailList {
			out.UserDetailList[n].UserId = &id
		}
		for n := range out.GroupDetailList {
			out.GroupDetailList[n].GroupId = &id
		}
	case *iam.ListPoliciesOutput:
		for n := range out.Policies {
			out.Policies[n].PolicyId = &id
		}
	case *iam.GetServerCertificateOutput:
		out.ServerCertificate.ServerCertificateMetadata = &types.ServerCertificateMetadata{ServerCertificateId: &id}
	case *iam.ListSAMLProvidersOutput:
		for n := range out.SAMLProviderList {
			out.SAMLProviderList[n].CreateDate = &at
		}
	case *elasticache.DescribeCacheClustersOutput:
		for n := range out.CacheClusters {
			out.CacheClusters[n].CacheClusterCreateTime = &at
		}
	case *elasticache.DescribeReplicationGroupsOutput:
		for n := range out.ReplicationGroups {
			out.ReplicationGroups[n].ReplicationGroupCreateTime = &at
		}
	case *elasticache.DescribeCacheSubnetGroupsOutput:
		for n := range out.CacheSubnetGroups {
			out.CacheSubnetGroups[n].ARN = &id
		}
	}
}
