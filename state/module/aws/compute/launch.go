package compute

import (
	"context"
	"strconv"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func asgOf(a *cloud.Account) *autoscaling.Client {
	return autoscaling.NewFromConfig(a.Client("autoscaling"))
}

// LCTable returns the state functions of boto_lc.
func LCTable(c *cloud.Cloud) module.Table {
	return module.Table{
		"present": func() module.Resource { return &LCPresent{Common: cloud.Common{Cloud: c}} },
		"absent":  func() module.Resource { return &lcAbsent{Common: cloud.Common{Cloud: c}} },
	}
}

// Launch has the arguments of boto_lc.present, which say how an instance starts. AWS takes no launch configurations
// from new accounts, so they become a version of a launch template with the same meaning.
type Launch struct {
	Image      string     `sls:"image_id"`
	Key        string     `sls:"key_name"`
	VPCID      string     `sls:"vpc_id"`
	VPCName    string     `sls:"vpc_name"`
	Groups     []string   `sls:"security_groups"`
	UserData   string     `sls:"user_data"`
	CloudInit  *value.Map `sls:"cloud_init"`
	Bootstrap  any        `sls:"bootstrap"`
	Type       string     `sls:"instance_type"`
	Kernel     string     `sls:"kernel_id"`
	RAMDisk    string     `sls:"ramdisk_id"`
	Devices    any        `sls:"block_device_mappings"`
	Delete     *bool      `sls:"delete_on_termination"`
	Monitoring *bool      `sls:"instance_monitoring"`
	Spot       string     `sls:"spot_price"`
	Profile    string     `sls:"instance_profile_name"`
	Optimized  *bool      `sls:"ebs_optimized"`
	Public     *bool      `sls:"associate_public_ip_address"`
}

// Template is a launch template, or an old launch configuration.
type Template struct {
	ID      string
	Version string // "" for a launch configuration
	Fields  *value.Map
	Old     bool // it is a launch configuration
}

// LCPresent implements boto_lc.present.
type LCPresent struct {
	cloud.Common
	Launch
	Name string `sls:"name"`
}

// RunsBeside implements module.Concurrent.
func (*LCPresent) RunsBeside() {}

// Check implements module.Resource.
func (l *LCPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := l.Cloud.Account(ctx, "asg", l.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p := cloud.NewPlan()
	_, err = l.Launch.Look(ctx, p, l.Cloud, a, l.Name, "", "")
	return l.Planned(p, err)
}

// Look plans the launch template with a name, and reports whether it plans a new version. prefix is put before the
// names of its fields. vpc is the VPC of its security groups, or "" for the VPC that the arguments select.
func (l *Launch) Look(ctx context.Context, p *cloud.Plan, c *cloud.Cloud, a *cloud.Account, name, prefix,
	vpc string) (bool, error) {
	has, err := TemplateOf(ctx, a, name)
	if err != nil {
		return false, err
	}
	want, err := l.Fields(ctx, c, a, vpc)
	if err != nil {
		return false, err
	}
	switch {
	case has == nil:
		a.Expect("template", name)
		if prefix == "" {
			p.Create(want)
			p.New.Set("launch_template", name)
		} else {
			p.Differ(strings.TrimSuffix(prefix, " "), nil, want)
		}
	default:
		same := true
		for _, field := range union(has.Fields.Names(), want.Names()) {
			same = !p.Compare(prefix+field, has.Fields.Value(field), want.Value(field)) && same
		}
		if same {
			return false, nil
		}
	}
	p.Then("launch template version made", func(ctx context.Context) error {
		data, err := l.data(ctx, c, a, vpc)
		if err != nil {
			return err
		}
		client := network.EC2Of(a)
		defer a.Forget("template:" + name)
		if has == nil || has.Old {
			_, err = client.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: &name,
				LaunchTemplateData: data})
			return cloud.Failed("making launch template", name, err)
		}
		out, err := client.CreateLaunchTemplateVersion(ctx, &ec2.CreateLaunchTemplateVersionInput{LaunchTemplateName: &name,
			LaunchTemplateData: data})
		if err != nil {
			return cloud.Failed("making a version of launch template", name, err)
		}
		version := strconv.FormatInt(sdk.ToInt64(out.LaunchTemplateVersion.VersionNumber), 10)
		_, err = client.ModifyLaunchTemplate(ctx, &ec2.ModifyLaunchTemplateInput{LaunchTemplateName: &name,
			DefaultVersion: &version})
		return cloud.Failed("choosing a version of launch template", name, err)
	})
	return true, nil
}

func union(a, b []string) []string {
	all := a
	for _, name := range b {
		found := false
		for _, other := range a {
			found = found || other == name
		}
		if !found {
			all = append(all, name)
		}
	}
	return all
}

// TemplateOf returns the latest version of the launch template with a name, or else the launch configuration with that
// name, or nil if there is none.
func TemplateOf(ctx context.Context, a *cloud.Account, name string) (*Template, error) {
	return cloud.Remember(a, "template:"+name, func() (*Template, error) {
		out, err := network.EC2Of(a).DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{
			LaunchTemplateName: &name, Versions: []string{"$Latest"}})
		if cloud.HasCode(err, "InvalidLaunchTemplateName.NotFoundException", "InvalidLaunchTemplateId.NotFound") {
			return ConfigurationOf(ctx, a, name)
		}
		if err != nil {
			return nil, cloud.Failed("reading launch template", name, err)
		}
		if len(out.LaunchTemplateVersions) == 0 {
			return ConfigurationOf(ctx, a, name)
		}
		v := out.LaunchTemplateVersions[0]
		return &Template{ID: sdk.ToString(v.LaunchTemplateId), Version: strconv.FormatInt(sdk.ToInt64(v.VersionNumber), 10),
			Fields: templateFields(v.LaunchTemplateData)}, nil
	})
}

// ConfigurationOf returns the launch configuration with a name, or nil if there is none.
func ConfigurationOf(ctx context.Context, a *cloud.Account, name string) (*Template, error) {
	out, err := asgOf(a).DescribeLaunchConfigurations(ctx,
		&autoscaling.DescribeLaunchConfigurationsInput{LaunchConfigurationNames: []string{name}})
	if err != nil {
		return nil, cloud.Failed("reading launch configuration", name, err)
	}
	if len(out.LaunchConfigurations) == 0 {
		return nil, nil
	}
	return &Template{ID: sdk.ToString(out.LaunchConfigurations[0].LaunchConfigurationARN), Old: true,
		Fields: configurationFields(out.LaunchConfigurations[0])}, nil
}

// lcAbsent implements boto_lc.absent.
type lcAbsent struct {
	cloud.Common
	Name string `sls:"name"`
}

// Check implements module.Resource.
func (l *lcAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := l.Cloud.Account(ctx, "asg", l.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p := cloud.NewPlan()
	has, err := TemplateOf(ctx, a, l.Name)
	if has != nil && err == nil {
		p.Remove(has.ID, value.NewMap("launch_config", l.Name))
		p.Then("launch template deleted", func(ctx context.Context) error {
			defer a.Forget("template:" + l.Name)
			return DeleteTemplate(ctx, a, l.Name, has)
		})
	}
	return l.Planned(p, err)
}

// DeleteTemplate deletes a launch template, or a launch configuration.
func DeleteTemplate(ctx context.Context, a *cloud.Account, name string, has *Template) error {
	if has.Old {
		_, err := asgOf(a).DeleteLaunchConfiguration(ctx,
			&autoscaling.DeleteLaunchConfigurationInput{LaunchConfigurationName: &name})
		return cloud.Failed("deleting launch configuration", name, err)
	}
	_, err := network.EC2Of(a).DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: &name})
	return cloud.Failed("deleting launch template", name, err)
}
