package aws

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	scaling "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

func lcTable(c *Cloud) module.Table {
	return module.Table{
		"present": func() module.Resource { return &lcPresent{common: common{cloud: c}} },
		"absent":  func() module.Resource { return &lcAbsent{common: common{cloud: c}} },
	}
}

// launch is how an instance starts: the arguments of boto_lc.present. AWS takes no new launch configurations from new
// accounts, so it becomes a version of a launch template with the same meaning.
type launch struct {
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

// template is a launch template, or a launch configuration that a group had before.
type template struct {
	version string // "" for a launch configuration, and for what does not exist
	fields  *value.Map
	old     bool // a launch configuration
}

// lcPresent is boto_lc.present.
type lcPresent struct {
	common
	launch
	Name string `sls:"name"`
}

// RunsBeside implements module.Concurrent.
func (*lcPresent) RunsBeside() {}

// Check implements module.Resource.
func (l *lcPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := l.cloud.account(ctx, "asg", l.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p := newPlan()
	_, err = l.launch.look(ctx, p, l.cloud, a, l.Name, "", "")
	return l.check(p, err)
}

// look plans the launch template of a name. prefix is put before its fields. vpc is where its security groups are; ""
// for the VPC that the arguments say. It reports whether a version is made.
func (l *launch) look(ctx context.Context, p *plan, c *Cloud, a *account, name, prefix, vpc string) (bool, error) {
	has, err := templateOf(ctx, a, name)
	if err != nil {
		return false, err
	}
	want, err := l.fields(ctx, c, a, vpc)
	if err != nil {
		return false, err
	}
	switch {
	case has == nil:
		a.expect("template", name)
		if prefix == "" {
			p.create(want)
			p.new.Set("launch_template", name)
		} else {
			p.differ(strings.TrimSuffix(prefix, " "), nil, want)
		}
	default:
		same := true
		for _, field := range union(has.fields.Names(), want.Names()) {
			same = !p.compare(prefix+field, has.fields.Value(field), want.Value(field)) && same
		}
		if same {
			return false, nil
		}
	}
	p.then("launch template version made", func(ctx context.Context) error {
		data, err := l.data(ctx, c, a, vpc)
		if err != nil {
			return err
		}
		client := ec2Of(a)
		defer a.forget("template:" + name)
		if has == nil || has.old {
			_, err = client.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: &name,
				LaunchTemplateData: data})
			return failed("making launch template", name, err)
		}
		out, err := client.CreateLaunchTemplateVersion(ctx, &ec2.CreateLaunchTemplateVersionInput{LaunchTemplateName: &name,
			LaunchTemplateData: data})
		if err != nil {
			return failed("making a version of launch template", name, err)
		}
		version := strconv.FormatInt(sdk.ToInt64(out.LaunchTemplateVersion.VersionNumber), 10)
		_, err = client.ModifyLaunchTemplate(ctx, &ec2.ModifyLaunchTemplateInput{LaunchTemplateName: &name,
			DefaultVersion: &version})
		return failed("choosing a version of launch template", name, err)
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

// templateOf reads the latest version of a launch template, or an old launch configuration of the name; nil for none.
func templateOf(ctx context.Context, a *account, name string) (*template, error) {
	return remember(a, "template:"+name, func() (*template, error) {
		out, err := ec2Of(a).DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{
			LaunchTemplateName: &name, Versions: []string{"$Latest"}})
		if code(err, "InvalidLaunchTemplateName.NotFoundException", "InvalidLaunchTemplateId.NotFound") {
			return configurationOf(ctx, a, name)
		}
		if err != nil {
			return nil, failed("reading launch template", name, err)
		}
		if len(out.LaunchTemplateVersions) == 0 {
			return configurationOf(ctx, a, name)
		}
		v := out.LaunchTemplateVersions[0]
		return &template{version: strconv.FormatInt(sdk.ToInt64(v.VersionNumber), 10),
			fields: templateFields(v.LaunchTemplateData)}, nil
	})
}

// configurationOf reads an old launch configuration; nil for none.
func configurationOf(ctx context.Context, a *account, name string) (*template, error) {
	out, err := asgOf(a).DescribeLaunchConfigurations(ctx,
		&autoscaling.DescribeLaunchConfigurationsInput{LaunchConfigurationNames: []string{name}})
	if err != nil {
		return nil, failed("reading launch configuration", name, err)
	}
	if len(out.LaunchConfigurations) == 0 {
		return nil, nil
	}
	return &template{old: true, fields: configurationFields(out.LaunchConfigurations[0])}, nil
}

func put(m *value.Map, name string, v *string) {
	if v != nil && *v != "" {
		m.Set(name, *v)
	}
}

// userDataField is how a plan shows user data: by its digest, since it may hold secrets.
func userDataField(m *value.Map, encoded string) {
	if encoded == "" {
		return
	}
	plain, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		plain = []byte(encoded)
	}
	sum := sha256.Sum256(plain)
	m.Set("user_data", "sha256:"+hex.EncodeToString(sum[:8]))
}

func templateFields(d *types.ResponseLaunchTemplateData) *value.Map {
	m := value.NewMap()
	put(m, "image_id", d.ImageId)
	put(m, "key_name", d.KeyName)
	put(m, "kernel_id", d.KernelId)
	put(m, "ramdisk_id", d.RamDiskId)
	if d.InstanceType != "" {
		m.Set("instance_type", string(d.InstanceType))
	}
	ids := d.SecurityGroupIds
	for _, n := range d.NetworkInterfaces {
		ids = append(ids, n.Groups...)
		if n.AssociatePublicIpAddress != nil {
			m.Set("associate_public_ip_address", *n.AssociatePublicIpAddress)
		}
	}
	if len(ids) > 0 {
		m.Set("security_groups", sorted(ids))
	}
	userDataField(m, sdk.ToString(d.UserData))
	if d.Monitoring != nil && d.Monitoring.Enabled != nil {
		m.Set("instance_monitoring", *d.Monitoring.Enabled)
	}
	if d.EbsOptimized != nil {
		m.Set("ebs_optimized", *d.EbsOptimized)
	}
	if d.IamInstanceProfile != nil {
		name := sdk.ToString(d.IamInstanceProfile.Name)
		if arn := sdk.ToString(d.IamInstanceProfile.Arn); name == "" {
			name = arn[strings.LastIndexByte(arn, '/')+1:]
		}
		m.Set("instance_profile_name", name)
	}
	if o := d.InstanceMarketOptions; o != nil && o.SpotOptions != nil {
		put(m, "spot_price", o.SpotOptions.MaxPrice)
	}
	var devices []device
	for _, b := range d.BlockDeviceMappings {
		one := device{name: sdk.ToString(b.DeviceName), virtual: sdk.ToString(b.VirtualName)}
		if e := b.Ebs; e != nil {
			one.size, one.kind, one.iops, one.snapshot = e.VolumeSize, string(e.VolumeType), e.Iops, sdk.ToString(e.SnapshotId)
			one.delete, one.encrypted = e.DeleteOnTermination, e.Encrypted
		}
		devices = append(devices, one)
	}
	shownDevices(m, devices)
	return m
}

func configurationFields(l scaling.LaunchConfiguration) *value.Map {
	m := value.NewMap()
	put(m, "image_id", l.ImageId)
	put(m, "key_name", l.KeyName)
	put(m, "kernel_id", l.KernelId)
	put(m, "ramdisk_id", l.RamdiskId)
	put(m, "instance_type", l.InstanceType)
	put(m, "spot_price", l.SpotPrice)
	put(m, "instance_profile_name", l.IamInstanceProfile)
	if len(l.SecurityGroups) > 0 {
		m.Set("security_groups", sorted(l.SecurityGroups))
	}
	userDataField(m, sdk.ToString(l.UserData))
	if l.InstanceMonitoring != nil && l.InstanceMonitoring.Enabled != nil {
		m.Set("instance_monitoring", *l.InstanceMonitoring.Enabled)
	}
	if sdk.ToBool(l.EbsOptimized) {
		m.Set("ebs_optimized", true)
	}
	if l.AssociatePublicIpAddress != nil {
		m.Set("associate_public_ip_address", *l.AssociatePublicIpAddress)
	}
	var devices []device
	for _, b := range l.BlockDeviceMappings {
		one := device{name: sdk.ToString(b.DeviceName), virtual: sdk.ToString(b.VirtualName)}
		if e := b.Ebs; e != nil {
			one.size, one.kind, one.iops, one.snapshot = e.VolumeSize, sdk.ToString(e.VolumeType), e.Iops,
				sdk.ToString(e.SnapshotId)
			one.delete, one.encrypted = e.DeleteOnTermination, e.Encrypted
		}
		devices = append(devices, one)
	}
	shownDevices(m, devices)
	return m
}

// device is a disk of an instance.
type device struct {
	name, virtual, kind, snapshot string
	size, iops                    *int32
	delete, encrypted             *bool
}

// devices reads block_device_mappings: mappings of a device's name to its size, volume_type, iops, snapshot_id,
// delete_on_termination and encrypted; or virtual_name.
func (l *launch) devices() (all []device, err error) {
	for _, item := range module.Items(l.Devices) {
		for key, v := range mapOf(item).All() {
			m := mapOf(v)
			d := device{name: value.Str(key), virtual: text(m, "virtual_name"), kind: text(m, "volume_type"),
				snapshot: text(m, "snapshot_id")}
			if v := text(m, "ephemeral_name"); v != "" {
				d.virtual = v
			}
			for name, field := range map[string]**int32{"size": &d.size, "iops": &d.iops} {
				if n, ok := number(m, name); ok {
					*field = &n
				}
			}
			for name, field := range map[string]**bool{"delete_on_termination": &d.delete, "encrypted": &d.encrypted} {
				if v, ok := m.Get(name); ok && v != nil {
					b := value.Truth(v)
					*field = &b
				}
			}
			if d.delete == nil && d.virtual == "" {
				d.delete = l.Delete
			}
			if !strings.HasPrefix(d.name, "/dev/") && !strings.HasPrefix(d.name, "xvd") && !strings.HasPrefix(d.name, "sd") {
				return nil, diag.WithHint(fmt.Errorf("%s is not a name of a device", d.name), "write - /dev/sda1: {size: 20}")
			}
			all = append(all, d)
		}
	}
	return all, nil
}

func shownDevices(m *value.Map, devices []device) {
	if len(devices) == 0 {
		return
	}
	all := value.NewMap()
	for _, d := range devices {
		one := value.NewMap()
		put(one, "virtual_name", &d.virtual)
		put(one, "volume_type", &d.kind)
		put(one, "snapshot_id", &d.snapshot)
		if d.size != nil {
			one.Set("size", int(*d.size))
		}
		if d.iops != nil {
			one.Set("iops", int(*d.iops))
		}
		if d.delete != nil {
			one.Set("delete_on_termination", *d.delete)
		}
		if d.encrypted != nil {
			one.Set("encrypted", *d.encrypted)
		}
		all.Set(d.name, one)
	}
	m.Set("block_device_mappings", all)
}

// groupIDs are the security groups of the instances.
func (l *launch) groupIDs(ctx context.Context, a *account, vpc string) ([]string, error) {
	if len(l.Groups) == 0 {
		return nil, nil
	}
	if vpc == "" || l.VPCID != "" || l.VPCName != "" {
		var err error
		if vpc, err = vpcOf(ctx, a, l.VPCID, l.VPCName); err != nil {
			return nil, err
		}
	}
	return groupIDs(ctx, a, vpc, l.Groups)
}

// userData is what an instance runs at its first start, encoded.
func (l *launch) userData(c *Cloud) (string, error) {
	given := 0
	for _, is := range []bool{l.UserData != "", l.CloudInit.Len() > 0, l.Bootstrap != nil} {
		if is {
			given++
		}
	}
	if given > 1 && (l.UserData != "" || l.CloudInit.Len() == 0) {
		return "", diag.WithHint(errors.New("user_data stands beside cloud_init or bootstrap"), "give one of them")
	}
	script := ""
	if l.Bootstrap != nil {
		m := mapOf(l.Bootstrap)
		if name, ok := l.Bootstrap.(string); ok {
			m = mapOf(c.setting(name))
		}
		if m == nil || c.Bootstrap == nil {
			return "", diag.WithHint(fmt.Errorf("bootstrap is %s, and a mapping was expected", value.Repr(l.Bootstrap)),
				"give store, agent, agent_digest and trust_root, or the name of a pillar that has them")
		}
		var err error
		if script, err = c.Bootstrap(m); err != nil {
			return "", err
		}
	}
	switch {
	case l.CloudInit.Len() > 0:
		text, err := multipart(l.CloudInit, script)
		return base64.StdEncoding.EncodeToString([]byte(text)), err
	case script != "":
		return base64.StdEncoding.EncodeToString([]byte(script)), nil
	}
	return base64.StdEncoding.EncodeToString([]byte(l.UserData)), nil
}

// multipart is the text that cloud-init takes apart: boothooks, scripts and cloud-config. script runs last; "" for
// none.
func multipart(m *value.Map, script string) (string, error) {
	type part struct{ kind, name, text string }
	var parts []part
	for _, kind := range m.Names() {
		switch kind {
		case "boothooks", "scripts":
			subtype := map[string]string{"boothooks": "cloud-boothook", "scripts": "x-shellscript"}[kind]
			for key, v := range mapOf(m.Value(kind)).All() {
				text := value.Str(v)
				if kind == "scripts" && !strings.HasPrefix(text, "#!") {
					text = "#!/bin/sh\n" + text
				}
				parts = append(parts, part{subtype, value.Str(key), text})
			}
		case "cloud-config":
			text, ok := m.Value(kind).(string)
			if !ok {
				text = "#cloud-config\n" + yaml.Dump(m.Value(kind), yaml.DumpOptions{Indent: 2, Width: 80, Collections: yaml.Block})
			}
			parts = append(parts, part{"cloud-config", "cloud-config", text})
		default:
			return "", diag.WithHint(fmt.Errorf("cloud_init has no %s", kind), "it has boothooks, scripts and cloud-config")
		}
	}
	if script != "" {
		parts = append(parts, part{"x-shellscript", "bootstrap", script})
	}
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%s\x00%s\x00%s\x00", p.kind, p.name, p.text)
	}
	boundary := "part-" + hex.EncodeToString(sum.Sum(nil)[:16])
	var b strings.Builder
	fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=\"%s\"\nMIME-Version: 1.0\n\n", boundary)
	for _, p := range parts {
		fmt.Fprintf(&b, "--%s\nContent-Type: text/%s; charset=\"utf-8\"\nMIME-Version: 1.0\n"+
			"Content-Transfer-Encoding: 8bit\nContent-Disposition: attachment; filename=%q\n\n%s\n", boundary, p.kind, p.name,
			strings.TrimSuffix(p.text, "\n"))
	}
	fmt.Fprintf(&b, "--%s--\n", boundary)
	return b.String(), nil
}

// fields are what the launch template says, as declared.
func (l *launch) fields(ctx context.Context, c *Cloud, a *account, vpc string) (*value.Map, error) {
	m := value.NewMap()
	for _, f := range []struct {
		name string
		v    *string
	}{{"image_id", &l.Image}, {"key_name", &l.Key}, {"kernel_id", &l.Kernel}, {"ramdisk_id", &l.RAMDisk},
		{"instance_type", &l.Type}} {
		put(m, f.name, f.v)
	}
	ids, err := l.groupIDs(ctx, a, vpc)
	if err != nil {
		return nil, err
	}
	if l.Public != nil {
		m.Set("associate_public_ip_address", *l.Public)
	}
	if len(ids) > 0 {
		m.Set("security_groups", sorted(ids))
	}
	data, err := l.userData(c)
	if err != nil {
		return nil, err
	}
	userDataField(m, data)
	if l.Monitoring != nil {
		m.Set("instance_monitoring", *l.Monitoring)
	}
	if l.Optimized != nil {
		m.Set("ebs_optimized", *l.Optimized)
	}
	put(m, "instance_profile_name", &l.Profile)
	put(m, "spot_price", &l.Spot)
	devices, err := l.devices()
	shownDevices(m, devices)
	return m, err
}

// data is the launch template as AWS takes it.
func (l *launch) data(ctx context.Context, c *Cloud, a *account, vpc string) (*types.RequestLaunchTemplateData, error) {
	d := &types.RequestLaunchTemplateData{InstanceType: types.InstanceType(l.Type), EbsOptimized: l.Optimized}
	for field, v := range map[**string]string{&d.ImageId: l.Image, &d.KeyName: l.Key, &d.KernelId: l.Kernel,
		&d.RamDiskId: l.RAMDisk} {
		if v != "" {
			*field = &v
		}
	}
	ids, err := l.groupIDs(ctx, a, vpc)
	if err != nil {
		return nil, err
	}
	if l.Public != nil {
		d.NetworkInterfaces = []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{DeviceIndex: sdk.Int32(0),
			AssociatePublicIpAddress: l.Public, Groups: ids}}
	} else {
		d.SecurityGroupIds = ids
	}
	data, err := l.userData(c)
	if err != nil {
		return nil, err
	}
	if data != "" {
		d.UserData = &data
	}
	if l.Monitoring != nil {
		d.Monitoring = &types.LaunchTemplatesMonitoringRequest{Enabled: l.Monitoring}
	}
	if l.Profile != "" {
		d.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: &l.Profile}
	}
	if l.Spot != "" {
		d.InstanceMarketOptions = &types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot,
			SpotOptions: &types.LaunchTemplateSpotMarketOptionsRequest{MaxPrice: &l.Spot}}
	}
	devices, err := l.devices()
	for _, one := range devices {
		b := types.LaunchTemplateBlockDeviceMappingRequest{DeviceName: &one.name}
		if one.virtual != "" {
			b.VirtualName = &one.virtual
		} else {
			b.Ebs = &types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: one.size, VolumeType: types.VolumeType(one.kind),
				Iops: one.iops, DeleteOnTermination: one.delete, Encrypted: one.encrypted}
			if one.snapshot != "" {
				b.Ebs.SnapshotId = &one.snapshot
			}
		}
		d.BlockDeviceMappings = append(d.BlockDeviceMappings, b)
	}
	return d, err
}

// lcAbsent is boto_lc.absent.
type lcAbsent struct {
	common
	Name string `sls:"name"`
}

// Check implements module.Resource.
func (l *lcAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := l.cloud.account(ctx, "asg", l.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p := newPlan()
	has, err := templateOf(ctx, a, l.Name)
	if has != nil && err == nil {
		p.remove(value.NewMap("launch_config", l.Name))
		p.then("launch template deleted", func(ctx context.Context) error {
			defer a.forget("template:" + l.Name)
			return deleteTemplate(ctx, a, l.Name, has)
		})
	}
	return l.check(p, err)
}

func deleteTemplate(ctx context.Context, a *account, name string, has *template) error {
	if has.old {
		_, err := asgOf(a).DeleteLaunchConfiguration(ctx,
			&autoscaling.DeleteLaunchConfigurationInput{LaunchConfigurationName: &name})
		return failed("deleting launch configuration", name, err)
	}
	_, err := ec2Of(a).DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: &name})
	return failed("deleting launch template", name, err)
}
