package scaling

import (
	"context"
	"fmt"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/compute"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// asgAbsent implements boto_asg.absent.
type asgAbsent struct {
	cloud.Common
	Name      string `sls:"name"`
	Force     bool   `sls:"force"`
	RemoveOwn bool   `sls:"remove_lc"`
}

// Check implements module.Resource.
func (g *asgAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := g.Cloud.Account(ctx, "asg", g.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p := cloud.NewPlan()
	has, err := Describe(ctx, a, g.Name)
	if has == nil || err != nil {
		return g.Planned(p, err)
	}
	if len(has.Instances) > 0 && !g.Force {
		return module.Diff{}, diag.Resource.Hint(fmt.Errorf("group %s has %d instances", g.Name, len(has.Instances)),
			"give force: True to terminate them with the group")
	}
	fields := value.NewMap("asg", g.Name, "instances", len(has.Instances))
	if t := has.LaunchTemplate; g.RemoveOwn && t != nil {
		cloud.Put(fields, "launch_template", t.LaunchTemplateId)
	} else if g.RemoveOwn {
		cloud.Put(fields, "launch_config", has.LaunchConfigurationName)
	}
	p.Remove(sdk.ToString(has.AutoScalingGroupARN), fields)
	p.Then("group deleted", func(ctx context.Context) error {
		_, err := clientOf(a).DeleteAutoScalingGroup(ctx,
			&autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: &g.Name,
				ForceDelete: &g.Force})
		if err != nil {
			return cloud.Failed("deleting auto scaling group", g.Name, err)
		}
		return cloud.WaitFor(ctx, "group "+g.Name+" is gone", 20*time.Minute, func(ctx context.Context) (bool, error) {
			now, err := Describe(ctx, a, g.Name)
			return now == nil, err
		})
	})
	if g.RemoveOwn {
		g.removeOwn(p, a, has)
	}
	return g.Planned(p, nil)
}

// removeOwn plans to delete the launch template or launch configuration of the group.
func (g *asgAbsent) removeOwn(p *cloud.Plan, a *cloud.Account, has *types.AutoScalingGroup) {
	p.Then("launch template deleted", func(ctx context.Context) error {
		if has.LaunchTemplate != nil {
			return compute.DeleteTemplate(ctx, a, sdk.ToString(has.LaunchTemplate.LaunchTemplateName), &compute.Template{})
		}
		if has.LaunchConfigurationName == nil {
			return nil
		}
		return compute.DeleteTemplate(ctx, a, *has.LaunchConfigurationName, &compute.Template{Old: true})
	})
}
