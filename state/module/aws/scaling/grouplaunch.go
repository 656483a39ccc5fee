package scaling

import (
	"context"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/compute"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// launchOf decodes launch_config, which has the arguments of boto_lc.present. It returns nil if there is none.
func (g *asgPresent) launchOf() (*compute.Launch, error) {
	m := cloud.MapOf(g.Launch)
	if m == nil {
		return nil, nil
	}
	l := &compute.Launch{}
	resource := &compute.LCPresent{}
	arguments := m.Clone()
	arguments.Set("name", g.LaunchName)
	if _, problems := module.Decode(resource,
		module.Call{Function: "boto_lc.present", Arguments: arguments}); len(problems) > 0 {
		return nil, fmt.Errorf("launch_config: %w", problems.Err())
	}
	for _, name := range m.Names() {
		known, _ := module.ArgumentsOf(resource)
		if !slices.ContainsFunc(known, func(a module.Argument) bool { return a.Name == name }) {
			return nil, diag.Amazon.Hint(fmt.Errorf("launch_config has no %s", name),
				"it takes the arguments of boto_lc.present")
		}
	}
	*l = resource.Launch
	if l.Profile == "" {
		l.Profile = g.Profile
	}
	return l, nil
}

// launch plans the launch template, and reports whether the group has to use another one, or another version.
func (g *asgPresent) launch(ctx context.Context, p *cloud.Plan, a *cloud.Account, has *types.AutoScalingGroup) (bool,
	error) {
	l, err := g.launchOf()
	if err != nil {
		return false, err
	}
	changed := false
	if l != nil {
		vpc, err := g.vpc(ctx, a)
		if err != nil {
			return false, err
		}
		if has.LaunchConfigurationName != nil && strings.HasPrefix(*has.LaunchConfigurationName, g.LaunchName) {
			return g.stays(ctx, p, a, l, vpc, *has.LaunchConfigurationName)
		}
		if changed, err = l.Look(ctx, p, g.Cloud, a, g.LaunchName, "launch_config ", vpc); err != nil {
			return false, err
		}
	}
	t, err := compute.TemplateOf(ctx, a, g.LaunchName)
	if err != nil {
		return false, err
	}
	old := shownLaunch(has)
	switch {
	case t == nil && !a.Expects("template", g.LaunchName):
		return false, cloud.Missing("launch configuration", g.LaunchName, "boto_lc.present")
	case p.Made, changed:
		return true, nil
	case t != nil && t.Old:
		return p.Compare("launch_config_name", sdk.ToString(has.LaunchConfigurationName), g.LaunchName), nil
	case t != nil && has.LaunchTemplate != nil && sdk.ToString(has.LaunchTemplate.LaunchTemplateName) == g.LaunchName &&
		slices.Contains([]string{t.Version, "$Latest"}, sdk.ToString(has.LaunchTemplate.Version)):
		return false, nil
	}
	version := cloud.Later
	if t != nil {
		version = t.Version
	}
	p.Differ("launch_template", old, g.LaunchName+" version "+version)
	return true, nil
}

// stays plans a group that uses a launch configuration. The group keeps it while it is as declared; otherwise stays
// plans a launch template and reports true.
func (g *asgPresent) stays(ctx context.Context, p *cloud.Plan, a *cloud.Account, l *compute.Launch, vpc,
	old string) (bool, error) {
	now, err := compute.ConfigurationOf(ctx, a, old)
	if err != nil || now == nil {
		return false, err
	}
	want, err := l.Fields(ctx, g.Cloud, a, vpc)
	if err != nil {
		return false, err
	}
	if !now.Fields.Has("instance_monitoring") || !want.Has("instance_monitoring") { // AWS sets it by default
		now.Fields.Delete("instance_monitoring")
	}
	if value.Equal(now.Fields, want) {
		return false, nil
	}
	if _, err := l.Look(ctx, p, g.Cloud, a, g.LaunchName, "launch_config ", vpc); err != nil {
		return false, err
	}
	p.Differ("launch_template", "launch configuration "+old, g.LaunchName)
	return true, nil
}

func shownLaunch(has *types.AutoScalingGroup) any {
	switch {
	case has.LaunchTemplate != nil:
		return sdk.ToString(has.LaunchTemplate.LaunchTemplateName) + " version " + sdk.ToString(has.LaunchTemplate.Version)
	case has.LaunchConfigurationName != nil:
		return "launch configuration " + *has.LaunchConfigurationName
	}
	return nil
}
