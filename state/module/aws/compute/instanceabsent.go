package compute

import (
	"context"
	"fmt"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// instanceAbsent implements boto_ec2.instance_absent.
type instanceAbsent struct {
	instanceNamed
	Release bool       `sls:"release_eip"`
	Filters *value.Map `sls:"filters"`
}

// Check implements module.Resource.
func (i *instanceAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return i.Planned(i.look(ctx))
}

func (i *instanceAbsent) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := i.Cloud.Account(ctx, "ec2", i.Arguments)
	if err != nil {
		return nil, err
	}
	p := cloud.NewPlan()
	var more []types.Filter
	for key, v := range i.Filters.All() {
		more = append(more, types.Filter{Name: sdk.String(value.Str(key)), Values: cloud.Texts(v)})
	}
	all, err := InstancesOf(ctx, a, i.title(), i.InstanceID, more...)
	if err != nil {
		return nil, err
	}
	has, err := OnlyInstance(i.title(), all)
	if has == nil || err != nil {
		return p, err
	}
	client := network.EC2Of(a)
	p.Remove(sdk.ToString(has.InstanceId), value.NewMap("instance", i.title()))
	protected, err := client.DescribeInstanceAttribute(ctx, &ec2.DescribeInstanceAttributeInput{InstanceId: has.InstanceId,
		Attribute: types.InstanceAttributeNameDisableApiTermination})
	if err != nil {
		return nil, cloud.Failed("reading instance", i.title(), err)
	}
	if protected.DisableApiTermination != nil && sdk.ToBool(protected.DisableApiTermination.Value) {
		return nil, diag.Resource.Hint(fmt.Errorf("instance %s is protected against termination", i.title()),
			"set disable_api_termination: False first")
	}
	var allocations []string
	if i.Release {
		out, err := client.DescribeAddresses(ctx,
			&ec2.DescribeAddressesInput{Filters: []types.Filter{{Name: sdk.String("instance-id"),
				Values: []string{*has.InstanceId}}}})
		if err != nil {
			return nil, cloud.Failed("reading the addresses of instance", i.title(), err)
		}
		for _, one := range out.Addresses {
			allocations = append(allocations, sdk.ToString(one.AllocationId))
		}
		p.Old.Set("addresses", cloud.Sorted(allocations))
	}
	p.Then("instance terminated", func(ctx context.Context) error {
		if _, err := client.TerminateInstances(ctx,
			&ec2.TerminateInstancesInput{InstanceIds: []string{*has.InstanceId}}); err != nil {
			return cloud.Failed("terminating instance", i.title(), err)
		}
		return cloud.WaitFor(ctx, "instance "+i.title()+" is gone", 20*time.Minute, func(ctx context.Context) (bool, error) {
			left, err := InstancesOf(ctx, a, "", *has.InstanceId)
			return len(left) == 0, err
		})
	})
	for _, id := range allocations {
		p.Then("address released", func(ctx context.Context) error {
			return release(ctx, client, &id, "instance "+i.title())
		})
	}
	return p, nil
}

// release releases an elastic address, once what it was associated with is gone.
func release(ctx context.Context, client *ec2.Client, allocation *string, of string) error {
	return cloud.WaitFor(ctx, "nothing uses the address of "+of, cloud.Soon, func(ctx context.Context) (bool, error) {
		_, err := client.ReleaseAddress(ctx, &ec2.ReleaseAddressInput{AllocationId: allocation})
		if cloud.HasCode(err, "InvalidIPAddress.InUse") {
			return false, nil
		}
		return err == nil, cloud.Failed("releasing the address of", of, err)
	})
}
