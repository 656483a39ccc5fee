package compute

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
)

// instanceNamed selects an instance by its ID, or by its tag Name, which is the name of the state by default.
type instanceNamed struct {
	cloud.Common
	Name         string `sls:"name"`
	InstanceName string `sls:"instance_name"`
	InstanceID   string `sls:"instance_id"`
}

func (n *instanceNamed) title() string {
	if n.InstanceName != "" {
		return n.InstanceName
	}
	return n.Name
}

// InstancesOf returns the instances that are not being terminated and that have an ID, or match filters, or have a tag
// Name. An ID is used with the filters; the name is used only without both.
func InstancesOf(ctx context.Context, a *cloud.Account, name, id string, more ...types.Filter) ([]types.Instance,
	error) {
	in := &ec2.DescribeInstancesInput{Filters: append([]types.Filter{{Name: sdk.String("instance-state-name"),
		Values: []string{"pending", "running", "stopping", "stopped"}}}, more...)}
	if id != "" {
		in.InstanceIds = []string{id}
	} else if len(more) == 0 {
		in.Filters = append(in.Filters, network.ByName(name)...)
	}
	all, err := cloud.Pages(func(next *string) (list []types.Instance, after *string, err error) {
		in.NextToken = next
		page, err := network.EC2Of(a).DescribeInstances(ctx, in)
		if err != nil {
			return nil, nil, cloud.Failed("reading instance", name, err)
		}
		for _, r := range page.Reservations {
			list = append(list, r.Instances...)
		}
		return list, page.NextToken, nil
	})
	if cloud.HasCode(err, "InvalidInstanceID.NotFound") {
		return nil, nil
	}
	return all, err
}

// find returns the selected instance, or nil if there is none. Several instances are an error.
func (n *instanceNamed) find(ctx context.Context, a *cloud.Account) (*types.Instance, error) {
	all, err := InstancesOf(ctx, a, n.title(), n.InstanceID)
	if err != nil {
		return nil, err
	}
	return OnlyInstance(n.title(), all)
}

// OnlyInstance returns the only instance with a name, or nil if there is none. The hint is for doubles, too, which a
// request without an answer, or two runs at once, may have made.
func OnlyInstance(name string, all []types.Instance) (*types.Instance, error) {
	return cloud.Only("instance", name, all, func(i *types.Instance) *string { return i.InstanceId },
		"give instance_id, terminate the one that was made twice with boto_ec2.instance_absent and its instance_id")
}
