package compute

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// modify plans a request that changes an attribute of an instance.
func (i *instancePresent) modify(p *cloud.Plan, a *cloud.Account, what string, in *ec2.ModifyInstanceAttributeInput) {
	p.Then(what+" set", func(ctx context.Context) error {
		_, err := network.EC2Of(a).ModifyInstanceAttribute(ctx, in)
		return cloud.Failed("setting "+what+" of instance", i.title(), err)
	})
}

func (i *instancePresent) drift(ctx context.Context, p *cloud.Plan, a *cloud.Account, has *types.Instance,
	groups []string) error {
	id := has.InstanceId
	var now []string
	for _, g := range has.SecurityGroups {
		now = append(now, sdk.ToString(g.GroupId))
	}
	if len(groups) > 0 && p.Compare("security_groups", cloud.Sorted(now), cloud.Sorted(groups)) {
		i.modify(p, a, "security_groups", &ec2.ModifyInstanceAttributeInput{InstanceId: id, Groups: groups})
	}
	if v, ok := i.Attributes.Get("sourceDestCheck"); ok &&
		p.Compare("sourceDestCheck", sdk.ToBool(has.SourceDestCheck), value.Truth(v)) {
		i.modify(p, a, "sourceDestCheck", &ec2.ModifyInstanceAttributeInput{InstanceId: id,
			SourceDestCheck: &types.AttributeBooleanValue{Value: sdk.Bool(value.Truth(v))}})
	}
	if i.Monitoring != nil && has.Monitoring != nil &&
		p.Compare("monitoring_enabled", has.Monitoring.State != types.MonitoringStateDisabled, *i.Monitoring) {
		p.Then("monitoring set", func(ctx context.Context) (err error) {
			if *i.Monitoring {
				_, err = network.EC2Of(a).MonitorInstances(ctx, &ec2.MonitorInstancesInput{InstanceIds: []string{*id}})
			} else {
				_, err = network.EC2Of(a).UnmonitorInstances(ctx, &ec2.UnmonitorInstancesInput{InstanceIds: []string{*id}})
			}
			return cloud.Failed("setting the monitoring of instance", i.title(), err)
		})
	}
	if err := i.asked(ctx, p, a, id); err != nil {
		return err
	}
	i.whileStopped(p, a, has)
	if i.Tags != nil {
		want := value.NewMap("Name", i.title())
		want.Update(i.Tags)
		network.TagEC2(p, a, *id, has.Tags, want)
	}
	if state := string(has.State.Name); i.Target != "" && p.Compare("target_state", state, i.Target) {
		p.Then("target state reached", func(ctx context.Context) error { return i.turn(ctx, a, *id) })
	}
	return nil
}

// asked plans the attributes that AWS returns only one at a time.
func (i *instancePresent) asked(ctx context.Context, p *cloud.Plan, a *cloud.Account, id *string) error {
	read := func(name types.InstanceAttributeName) (*ec2.DescribeInstanceAttributeOutput, error) {
		out, err := network.EC2Of(a).DescribeInstanceAttribute(ctx,
			&ec2.DescribeInstanceAttributeInput{InstanceId: id, Attribute: name})
		return out, cloud.Failed("reading instance", i.title(), err)
	}
	if i.Protected != nil {
		out, err := read(types.InstanceAttributeNameDisableApiTermination)
		if err != nil {
			return err
		}
		if p.Compare("disable_api_termination", out.DisableApiTermination != nil &&
			sdk.ToBool(out.DisableApiTermination.Value), *i.Protected) {
			i.modify(p, a, "disable_api_termination", &ec2.ModifyInstanceAttributeInput{InstanceId: id,
				DisableApiTermination: &types.AttributeBooleanValue{Value: i.Protected}})
		}
	}
	if i.Shutdown != "" {
		out, err := read(types.InstanceAttributeNameInstanceInitiatedShutdownBehavior)
		if err != nil {
			return err
		}
		old := ""
		if out.InstanceInitiatedShutdownBehavior != nil {
			old = sdk.ToString(out.InstanceInitiatedShutdownBehavior.Value)
		}
		if p.Compare("instance_initiated_shutdown_behavior", old, i.Shutdown) {
			i.modify(p, a, "instance_initiated_shutdown_behavior", &ec2.ModifyInstanceAttributeInput{InstanceId: id,
				Attribute: types.InstanceAttributeNameInstanceInitiatedShutdownBehavior, Value: &i.Shutdown})
		}
	}
	return nil
}

// whileStopped plans the attributes that AWS changes only while an instance is stopped, and warns of those that it
// never changes.
func (i *instancePresent) whileStopped(p *cloud.Plan, a *cloud.Account, has *types.Instance) {
	stopped := has.State != nil && has.State.Name == types.InstanceStateNameStopped
	if old := string(has.InstanceType); i.Type != "" && old != i.Type {
		if stopped {
			p.Differ("instance_type", old, i.Type)
			i.modify(p, a, "instance_type", &ec2.ModifyInstanceAttributeInput{InstanceId: has.InstanceId,
				InstanceType: &types.AttributeValue{Value: &i.Type}})
		} else {
			p.Warnings = append(p.Warnings, "instance_type is "+old+" and is changed once the instance is stopped")
		}
	}
	if i.Optimized != nil && sdk.ToBool(has.EbsOptimized) != *i.Optimized {
		if stopped {
			p.Differ("ebs_optimized", sdk.ToBool(has.EbsOptimized), *i.Optimized)
			i.modify(p, a, "ebs_optimized", &ec2.ModifyInstanceAttributeInput{InstanceId: has.InstanceId,
				EbsOptimized: &types.AttributeBooleanValue{Value: i.Optimized}})
		} else {
			p.Warnings = append(p.Warnings, "ebs_optimized is changed once the instance is stopped")
		}
	}
	for _, f := range []struct{ name, has, want string }{{"image_id", sdk.ToString(has.ImageId), i.Image},
		{"key_name", sdk.ToString(has.KeyName), i.KeyName},
		{"subnet_id", sdk.ToString(has.SubnetId), i.SubnetID}, {"private_ip_address", sdk.ToString(has.PrivateIpAddress),
			i.PrivateIP}} {
		if f.want != "" && f.has != f.want {
			p.Warnings = append(p.Warnings, f.name+" is "+f.has+" and cannot be changed")
		}
	}
}
