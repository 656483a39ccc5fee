package aws_test

import (
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/corpus-agent/corpus-agent/state/module/aws"
)

// oneAccount says that all credentials are of one account.
type oneAccount struct{}

func (oneAccount) answer(in any) (any, error) {
	if _, ok := in.(*sts.GetCallerIdentityInput); ok {
		return &sts.GetCallerIdentityOutput{Account: sdk.String("123456789012")}, nil
	}
	return nil, nil
}

// TestPlansJoinCredentialsOfAnAccount plans a resource with other credentials than the resource that it refers to. Both
// belong to one account, or it is not known whether they do.
func TestPlansJoinCredentialsOfAnAccount(t *testing.T) {
	plan := func(cloud *aws.Cloud) error {
		runState(t, cloud, "boto_vpc.present", "{name: net, cidr_block: 10.0.0.0/16}", true)
		_, err := tryState(t, cloud, "boto_vpc.subnet_present",
			"{name: sub, vpc_name: net, cidr_block: 10.0.1.0/24, keyid: other, key: other}", true)
		return err
	}
	if err := plan(newImitation(t, newNetworks(0), oneAccount{}).cloud()); err != nil {
		t.Errorf("with other credentials of the account, the plan fails: %v", err)
	}
	if err := plan(newImitation(t, newNetworks(0)).cloud()); err == nil || !strings.Contains(err.Error(), "no VPC net") {
		t.Errorf("with credentials of an unknown account, the plan says %v", err)
	}
}

// TestPlansJoinRegionsForGlobalServices plans a record in one region and its zone in another: Route 53 has no regions.
func TestPlansJoinRegionsForGlobalServices(t *testing.T) {
	cloud := newImitation(t, newZones(0)).cloud()
	runState(t, cloud, "boto_route53.hosted_zone_present", "{name: example.com.}", true)
	runState(t, cloud, "boto_route53.present",
		"{name: a.example.com., zone: example.com., record_type: A, value: 10.0.0.1, region: eu-west-1}", true)
}
