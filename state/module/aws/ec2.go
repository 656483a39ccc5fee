package aws

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func ec2Table(c *Cloud) module.Table {
	return module.Table{
		"key_present": func() module.Resource { return &keyPair{common: common{cloud: c}} },
		"key_absent":  func() module.Resource { return &keyPair{common: common{cloud: c}, absent: true} },
		"instance_present": func() module.Resource {
			return &instancePresent{instanceNamed: instanceNamed{common: common{cloud: c}}}
		},
		"instance_absent": func() module.Resource {
			return &instanceAbsent{instanceNamed: instanceNamed{common: common{cloud: c}}}
		},
		"volume_present": func() module.Resource {
			return &volumePresent{volumeNamed: volumeNamed{common: common{cloud: c}}}
		},
		"volume_absent": func() module.Resource {
			return &volumeAbsent{volumeNamed: volumeNamed{common: common{cloud: c}}}
		},
		"volumes_tagged": func() module.Resource { return &volumesTagged{common: common{cloud: c}} },
		"snapshot_created": func() module.Resource {
			return &imageCreated{common: common{cloud: c}, Wait: true, Longest: 300}
		},
		"eni_present":         func() module.Resource { return &interfacePresent{common: common{cloud: c}, Checked: true} },
		"eni_absent":          func() module.Resource { return &interfaceAbsent{common: common{cloud: c}} },
		"private_ips_present": func() module.Resource { return &privateAddresses{common: common{cloud: c}} },
		"private_ips_absent":  func() module.Resource { return &privateAddresses{common: common{cloud: c}, absent: true} },
	}
}

// keyPair is boto_ec2.key_present and key_absent. Of a new pair, the private half is written to save_path.
type keyPair struct {
	common
	absent bool
	host   *host.Host
	Name   string `sls:"name"`
	Save   string `sls:"save_path"`
	Public string `sls:"upload_public"`
}

// Valid implements module.Validated.
func (k *keyPair) Valid() error {
	if !k.absent && (k.Save == "") == (k.Public == "") {
		return diag.WithHint(errors.New("one of save_path and upload_public is needed"),
			"upload_public takes the public key, save_path the directory for the private half of a new pair")
	}
	return nil
}

// Check implements module.Resource.
func (k *keyPair) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return k.check(k.look(ctx))
}

// Apply implements module.Resource.
func (k *keyPair) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	k.host = h
	return k.common.Apply(ctx, h, d)
}

func (k *keyPair) look(ctx context.Context) (*plan, error) {
	a, err := k.cloud.account(ctx, "ec2", k.Account)
	if err != nil {
		return nil, err
	}
	p, client := newPlan(), ec2Of(a)
	out, err := client.DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{KeyNames: []string{k.Name}})
	there := err == nil && len(out.KeyPairs) > 0
	if err != nil && !code(err, "InvalidKeyPair.NotFound") {
		return nil, failed("reading key pair", k.Name, err)
	}
	switch {
	case there && k.absent:
		p.remove(value.NewMap("key", k.Name))
		p.then("key pair deleted", func(ctx context.Context) error {
			_, err := client.DeleteKeyPair(ctx, &ec2.DeleteKeyPairInput{KeyName: &k.Name})
			return failed("deleting key pair", k.Name, err)
		})
	case !there && !k.absent:
		p.create(value.NewMap("key", k.Name))
		p.then("key pair made", func(ctx context.Context) error { return k.create(ctx, client) })
	}
	return p, nil
}

func (k *keyPair) create(ctx context.Context, client *ec2.Client) error {
	if k.Public != "" {
		_, err := client.ImportKeyPair(ctx, &ec2.ImportKeyPairInput{KeyName: &k.Name, PublicKeyMaterial: []byte(k.Public)})
		return failed("importing key pair", k.Name, err)
	}
	path := filepath.Join(k.Save, filepath.Base(k.Name)+".pem")
	if _, err := k.host.Files.Lstat(path); err == nil {
		return diag.WithHint(fmt.Errorf("%s exists, and is not replaced by the key pair %s", path, k.Name), "move it away")
	}
	out, err := client.CreateKeyPair(ctx, &ec2.CreateKeyPairInput{KeyName: &k.Name})
	if err != nil {
		return failed("making key pair", k.Name, err)
	}
	private := fs.FileMode(0o600)
	err = k.host.Files.Write(path, host.NewFile{Content: strings.NewReader(sdk.ToString(out.KeyMaterial)), Mode: &private,
		UID: -1, GID: -1})
	return failed("writing the private half of key pair", k.Name, err)
}

// instanceNamed says which instance is meant: by its ID, or by its tag Name, which is the state's name by default.
type instanceNamed struct {
	common
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

// instancesOf finds the instances of a name, or an ID, that are not terminated.
func instancesOf(ctx context.Context, a *account, name, id string, more ...types.Filter) ([]types.Instance, error) {
	in := &ec2.DescribeInstancesInput{Filters: append([]types.Filter{{Name: sdk.String("instance-state-name"),
		Values: []string{"pending", "running", "stopping", "stopped"}}}, more...)}
	if id != "" {
		in.InstanceIds = []string{id}
	} else if len(more) == 0 {
		in.Filters = append(in.Filters, byName(name)...)
	}
	all, err := pages(func(next *string) (list []types.Instance, after *string, err error) {
		in.NextToken = next
		page, err := ec2Of(a).DescribeInstances(ctx, in)
		if err != nil {
			return nil, nil, failed("reading instance", name, err)
		}
		for _, r := range page.Reservations {
			list = append(list, r.Instances...)
		}
		return list, page.NextToken, nil
	})
	if code(err, "InvalidInstanceID.NotFound") {
		return nil, nil
	}
	return all, err
}

// find is the one instance that is meant; nil for none.
func (n *instanceNamed) find(ctx context.Context, a *account) (*types.Instance, error) {
	all, err := instancesOf(ctx, a, n.title(), n.InstanceID)
	switch {
	case err != nil || len(all) == 0:
		return nil, err
	case len(all) > 1:
		return nil, diag.WithHint(fmt.Errorf("%d instances are named %s", len(all), n.title()), "give instance_id")
	}
	return &all[0], nil
}

// instancePresent is boto_ec2.instance_present.
type instancePresent struct {
	instanceNamed
	Image        string     `sls:"image_id"`
	ImageName    string     `sls:"image_name"`
	Tags         *value.Map `sls:"tags"`
	KeyName      string     `sls:"key_name"`
	Groups       []string   `sls:"security_groups"`
	GroupIDs     []string   `sls:"security_group_ids"`
	GroupNames   []string   `sls:"security_group_names"`
	UserData     string     `sls:"user_data"`
	Type         string     `sls:"instance_type"`
	Placement    string     `sls:"placement"`
	Kernel       string     `sls:"kernel_id"`
	RAMDisk      string     `sls:"ramdisk_id"`
	VPCID        string     `sls:"vpc_id"`
	VPCName      string     `sls:"vpc_name"`
	Monitoring   *bool      `sls:"monitoring_enabled"`
	SubnetID     string     `sls:"subnet_id"`
	SubnetName   string     `sls:"subnet_name"`
	PrivateIP    string     `sls:"private_ip_address"`
	Devices      any        `sls:"block_device_map"`
	Protected    *bool      `sls:"disable_api_termination"`
	Shutdown     string     `sls:"instance_initiated_shutdown_behavior"`
	PlaceGroup   string     `sls:"placement_group"`
	Token        string     `sls:"client_token"`
	Tenancy      string     `sls:"tenancy"`
	ProfileARN   string     `sls:"instance_profile_arn"`
	ProfileName  string     `sls:"instance_profile_name"`
	Optimized    *bool      `sls:"ebs_optimized"`
	NICName      string     `sls:"network_interface_name"`
	NICID        string     `sls:"network_interface_id"`
	Attributes   *value.Map `sls:"attributes"`
	Target       string     `sls:"target_state"`
	PublicIP     string     `sls:"public_ip"`
	AllocationID string     `sls:"allocation_id"`
	Allocate     bool       `sls:"allocate_eip"`
}

// RunsBeside implements module.Concurrent.
func (*instancePresent) RunsBeside() {}

// Valid implements module.Validated.
func (i *instancePresent) Valid() error {
	given := 0
	for _, is := range []bool{i.PublicIP != "", i.AllocationID != "", i.Allocate} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return errors.New("public_ip, allocation_id and allocate_eip exclude one another")
	case i.Target != "" && i.Target != "running" && i.Target != "stopped":
		return diag.WithHint(fmt.Errorf("target_state is %s", i.Target), "write running or stopped")
	}
	for _, name := range i.Attributes.Names() {
		if !slices.Contains(instanceAttributes, name) {
			return diag.WithHint(fmt.Errorf("attributes has no %s", name), "%s", diag.DidYouMean(name, instanceAttributes))
		}
	}
	return nil
}

var instanceAttributes = []string{"disableApiTermination", "instanceInitiatedShutdownBehavior", "sourceDestCheck",
	"ebsOptimized", "instanceType", "userData"}

// Check implements module.Resource.
func (i *instancePresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return i.check(i.look(ctx))
}

// fold takes the attributes over into the arguments that mean the same.
func (i *instancePresent) fold() {
	flag := func(name string, to **bool) {
		if v, ok := i.Attributes.Get(name); ok {
			b := value.Truth(v)
			*to = &b
		}
	}
	flag("disableApiTermination", &i.Protected)
	flag("ebsOptimized", &i.Optimized)
	for name, to := range map[string]*string{"instanceInitiatedShutdownBehavior": &i.Shutdown, "instanceType": &i.Type,
		"userData": &i.UserData} {
		if v := text(i.Attributes, name); v != "" {
			*to = v
		}
	}
}

func (i *instancePresent) look(ctx context.Context) (*plan, error) {
	a, err := i.cloud.account(ctx, "ec2", i.Account)
	if err != nil {
		return nil, err
	}
	i.fold()
	p := newPlan()
	has, err := i.find(ctx, a)
	if err != nil {
		return nil, err
	}
	groups, err := i.groups(ctx, a)
	if err != nil {
		return nil, err
	}
	if has == nil {
		if i.InstanceID != "" {
			return nil, diag.WithHint(fmt.Errorf("there is no instance %s", i.InstanceID),
				"correct instance_id, or give a name to make one")
		}
		i.create(p, a, groups)
		has = &types.Instance{}
	} else if err := i.drift(ctx, p, a, has, groups); err != nil {
		return nil, err
	}
	return p, i.address(ctx, p, a, has)
}

// groups are the security groups of the instance.
func (i *instancePresent) groups(ctx context.Context, a *account) ([]string, error) {
	names := slices.Concat(i.Groups, i.GroupNames)
	if len(names) == 0 {
		return i.GroupIDs, nil
	}
	vpc, err := i.vpc(ctx, a)
	if err != nil {
		return nil, err
	}
	ids, err := groupIDs(ctx, a, vpc, names)
	return slices.Concat(i.GroupIDs, ids), err
}

func (i *instancePresent) subnet(ctx context.Context, a *account) (string, error) {
	if i.SubnetName == "" {
		return i.SubnetID, nil
	}
	ids, err := subnetIDs(ctx, a, nil, []string{i.SubnetName})
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

func (i *instancePresent) vpc(ctx context.Context, a *account) (string, error) {
	subnet, err := i.subnet(ctx, a)
	if err != nil || subnet == "" || i.VPCID+i.VPCName != "" {
		if err != nil {
			return "", err
		}
		return vpcOf(ctx, a, i.VPCID, i.VPCName)
	}
	return vpcOfSubnets(ctx, a, []string{subnet})
}

func (i *instancePresent) create(p *plan, a *account, groups []string) {
	a.expect("instance", i.title())
	fields := value.NewMap("instance", i.title())
	for _, f := range []struct{ name, v string }{{"image_id", i.Image}, {"image_name", i.ImageName},
		{"instance_type", i.Type},
		{"key_name", i.KeyName}, {"subnet_id", i.SubnetID}, {"subnet_name", i.SubnetName},
		{"instance_profile_name", i.ProfileName}} {
		put(fields, f.name, &f.v)
	}
	if len(groups) > 0 {
		fields.Set("security_groups", sorted(slices.Concat(i.Groups, i.GroupNames, i.GroupIDs)))
	}
	userDataField(fields, i.UserData)
	p.create(fields)
	p.then("instance made", func(ctx context.Context) error {
		in, err := i.request(ctx, a)
		if err != nil {
			return err
		}
		var made string
		err = waitFor(ctx, "the instance profile of instance "+i.title()+" is seen", soon,
			func(ctx context.Context) (bool, error) {
				out, err := ec2Of(a).RunInstances(ctx, in)
				if code(err, "InvalidParameterValue") && strings.Contains(err.Error(), "nstance profile") {
					return false, nil // one that was just made is not seen everywhere at once
				}
				if err == nil {
					made = sdk.ToString(out.Instances[0].InstanceId)
				}
				return err == nil, failed("making instance", i.title(), err)
			})
		if err != nil {
			return err
		}
		if err := i.reached(ctx, a, made, "running"); err != nil || i.Target != "stopped" {
			return err
		}
		return i.turn(ctx, a, made)
	})
}

// request is what a new instance is made of.
func (i *instancePresent) request(ctx context.Context, a *account) (*ec2.RunInstancesInput, error) {
	data, err := i.launch().data(ctx, i.cloud, a, "")
	if err != nil {
		return nil, err
	}
	image, err := i.image(ctx, a)
	if err != nil {
		return nil, err
	}
	subnet, err := i.subnet(ctx, a)
	if err != nil {
		return nil, err
	}
	groups, err := i.groups(ctx, a)
	if err != nil {
		return nil, err
	}
	in := &ec2.RunInstancesInput{MinCount: sdk.Int32(1), MaxCount: sdk.Int32(1), ImageId: &image, KeyName: data.KeyName,
		InstanceType: data.InstanceType,
		UserData:     data.UserData, EbsOptimized: i.Optimized, DisableApiTermination: i.Protected, SecurityGroupIds: groups,
		KernelId: optional(i.Kernel), RamdiskId: optional(i.RAMDisk), SubnetId: optional(subnet),
		PrivateIpAddress: optional(i.PrivateIP), ClientToken: optional(i.Token),
		InstanceInitiatedShutdownBehavior: types.ShutdownBehavior(i.Shutdown)}
	if i.Monitoring != nil {
		in.Monitoring = &types.RunInstancesMonitoringEnabled{Enabled: i.Monitoring}
	}
	if i.Placement+i.PlaceGroup+i.Tenancy != "" {
		in.Placement = &types.Placement{AvailabilityZone: optional(i.Placement), GroupName: optional(i.PlaceGroup),
			Tenancy: types.Tenancy(i.Tenancy)}
	}
	if i.ProfileARN+i.ProfileName != "" {
		in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Arn: optional(i.ProfileARN),
			Name: optional(i.ProfileName)}
	}
	for _, d := range data.BlockDeviceMappings {
		b := types.BlockDeviceMapping{DeviceName: d.DeviceName, VirtualName: d.VirtualName}
		if d.Ebs != nil {
			b.Ebs = &types.EbsBlockDevice{VolumeSize: d.Ebs.VolumeSize, VolumeType: d.Ebs.VolumeType, Iops: d.Ebs.Iops,
				DeleteOnTermination: d.Ebs.DeleteOnTermination, Encrypted: d.Ebs.Encrypted, SnapshotId: d.Ebs.SnapshotId}
		}
		in.BlockDeviceMappings = append(in.BlockDeviceMappings, b)
	}
	tags := value.NewMap("Name", i.title())
	tags.Update(i.Tags)
	in.TagSpecifications = specs(types.ResourceTypeInstance, tags, "")
	return in, i.interfaced(ctx, a, in)
}

func (i *instancePresent) launch() *launch {
	return &launch{Key: i.KeyName, UserData: i.UserData, Type: i.Type, Devices: i.Devices}
}

// interfaced makes the instance use a network interface that is there, which has subnet and groups of its own.
func (i *instancePresent) interfaced(ctx context.Context, a *account, in *ec2.RunInstancesInput) error {
	id := i.NICID
	if i.NICName != "" {
		has, err := interfaceOf(ctx, a, i.NICName, "")
		if err != nil || has == nil {
			return errors.Join(err, missing("network interface", i.NICName, "boto_ec2.eni_present"))
		}
		id = sdk.ToString(has.NetworkInterfaceId)
	}
	if id != "" {
		in.SubnetId, in.SecurityGroupIds, in.PrivateIpAddress = nil, nil, nil
		in.NetworkInterfaces = []types.InstanceNetworkInterfaceSpecification{{DeviceIndex: sdk.Int32(0),
			NetworkInterfaceId: &id}}
	}
	return nil
}

// image is the ID of the image, of which the newest with the name counts.
func (i *instancePresent) image(ctx context.Context, a *account) (string, error) {
	if i.Image != "" {
		return i.Image, nil
	}
	if i.ImageName == "" {
		return "", diag.WithHint(fmt.Errorf("instance %s has no image", i.title()), "give image_id or image_name")
	}
	out, err := ec2Of(a).DescribeImages(ctx,
		&ec2.DescribeImagesInput{Filters: []types.Filter{{Name: sdk.String("name"), Values: []string{i.ImageName}}}})
	if err != nil {
		return "", failed("looking for image", i.ImageName, err)
	}
	if len(out.Images) == 0 {
		return "", diag.WithHint(fmt.Errorf("there is no image %s", i.ImageName), "correct image_name, or give image_id")
	}
	newest := slices.MaxFunc(out.Images, func(a, b types.Image) int {
		return strings.Compare(sdk.ToString(a.CreationDate), sdk.ToString(b.CreationDate))
	})
	return sdk.ToString(newest.ImageId), nil
}

// reached waits until an instance is in a state.
func (i *instancePresent) reached(ctx context.Context, a *account, id, state string) error {
	return waitFor(ctx, "instance "+i.title()+" is "+state, 10*time.Minute, func(ctx context.Context) (bool, error) {
		all, err := instancesOf(ctx, a, "", id)
		return len(all) > 0 && all[0].State != nil && string(all[0].State.Name) == state, err
	})
}

// turn starts or stops an instance, as target_state says.
func (i *instancePresent) turn(ctx context.Context, a *account, id string) (err error) {
	if i.Target == "stopped" {
		_, err = ec2Of(a).StopInstances(ctx, &ec2.StopInstancesInput{InstanceIds: []string{id}})
	} else {
		_, err = ec2Of(a).StartInstances(ctx, &ec2.StartInstancesInput{InstanceIds: []string{id}})
	}
	if err != nil {
		return failed("starting or stopping instance", i.title(), err)
	}
	return i.reached(ctx, a, id, i.Target)
}

// modify plans a request that changes an attribute of an instance.
func (i *instancePresent) modify(p *plan, a *account, what string, in *ec2.ModifyInstanceAttributeInput) {
	p.then(what+" set", func(ctx context.Context) error {
		_, err := ec2Of(a).ModifyInstanceAttribute(ctx, in)
		return failed("setting "+what+" of instance", i.title(), err)
	})
}

func (i *instancePresent) drift(ctx context.Context, p *plan, a *account, has *types.Instance, groups []string) error {
	id := has.InstanceId
	var now []string
	for _, g := range has.SecurityGroups {
		now = append(now, sdk.ToString(g.GroupId))
	}
	if len(groups) > 0 && p.compare("security_groups", sorted(now), sorted(groups)) {
		i.modify(p, a, "security_groups", &ec2.ModifyInstanceAttributeInput{InstanceId: id, Groups: groups})
	}
	if v, ok := i.Attributes.Get("sourceDestCheck"); ok &&
		p.compare("sourceDestCheck", sdk.ToBool(has.SourceDestCheck), value.Truth(v)) {
		i.modify(p, a, "sourceDestCheck", &ec2.ModifyInstanceAttributeInput{InstanceId: id,
			SourceDestCheck: &types.AttributeBooleanValue{Value: sdk.Bool(value.Truth(v))}})
	}
	if i.Monitoring != nil && has.Monitoring != nil &&
		p.compare("monitoring_enabled", has.Monitoring.State != types.MonitoringStateDisabled, *i.Monitoring) {
		p.then("monitoring set", func(ctx context.Context) (err error) {
			if *i.Monitoring {
				_, err = ec2Of(a).MonitorInstances(ctx, &ec2.MonitorInstancesInput{InstanceIds: []string{*id}})
			} else {
				_, err = ec2Of(a).UnmonitorInstances(ctx, &ec2.UnmonitorInstancesInput{InstanceIds: []string{*id}})
			}
			return failed("setting the monitoring of instance", i.title(), err)
		})
	}
	if err := i.asked(ctx, p, a, id); err != nil {
		return err
	}
	i.whileStopped(p, a, has)
	if i.Tags != nil {
		want := value.NewMap("Name", i.title())
		want.Update(i.Tags)
		tagEC2(p, a, *id, has.Tags, want)
	}
	if state := string(has.State.Name); i.Target != "" && p.compare("target_state", state, i.Target) {
		p.then("target state reached", func(ctx context.Context) error { return i.turn(ctx, a, *id) })
	}
	return nil
}

// asked plans the attributes that AWS tells only one by one.
func (i *instancePresent) asked(ctx context.Context, p *plan, a *account, id *string) error {
	read := func(name types.InstanceAttributeName) (*ec2.DescribeInstanceAttributeOutput, error) {
		out, err := ec2Of(a).DescribeInstanceAttribute(ctx,
			&ec2.DescribeInstanceAttributeInput{InstanceId: id, Attribute: name})
		return out, failed("reading instance", i.title(), err)
	}
	if i.Protected != nil {
		out, err := read(types.InstanceAttributeNameDisableApiTermination)
		if err != nil {
			return err
		}
		if p.compare("disable_api_termination", out.DisableApiTermination != nil &&
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
		if p.compare("instance_initiated_shutdown_behavior", old, i.Shutdown) {
			i.modify(p, a, "instance_initiated_shutdown_behavior", &ec2.ModifyInstanceAttributeInput{InstanceId: id,
				Attribute: types.InstanceAttributeNameInstanceInitiatedShutdownBehavior, Value: &i.Shutdown})
		}
	}
	return nil
}

// whileStopped plans what AWS changes only of a stopped instance, and warns of what an instance keeps.
func (i *instancePresent) whileStopped(p *plan, a *account, has *types.Instance) {
	stopped := has.State != nil && has.State.Name == types.InstanceStateNameStopped
	if old := string(has.InstanceType); i.Type != "" && old != i.Type {
		if stopped {
			p.differ("instance_type", old, i.Type)
			i.modify(p, a, "instance_type", &ec2.ModifyInstanceAttributeInput{InstanceId: has.InstanceId,
				InstanceType: &types.AttributeValue{Value: &i.Type}})
		} else {
			p.warnings = append(p.warnings, "instance_type is "+old+" and is changed once the instance is stopped")
		}
	}
	if i.Optimized != nil && sdk.ToBool(has.EbsOptimized) != *i.Optimized {
		if stopped {
			p.differ("ebs_optimized", sdk.ToBool(has.EbsOptimized), *i.Optimized)
			i.modify(p, a, "ebs_optimized", &ec2.ModifyInstanceAttributeInput{InstanceId: has.InstanceId,
				EbsOptimized: &types.AttributeBooleanValue{Value: i.Optimized}})
		} else {
			p.warnings = append(p.warnings, "ebs_optimized is changed once the instance is stopped")
		}
	}
	for _, f := range []struct{ name, has, want string }{{"image_id", sdk.ToString(has.ImageId), i.Image},
		{"key_name", sdk.ToString(has.KeyName), i.KeyName},
		{"subnet_id", sdk.ToString(has.SubnetId), i.SubnetID}, {"private_ip_address", sdk.ToString(has.PrivateIpAddress),
			i.PrivateIP}} {
		if f.want != "" && f.has != f.want {
			p.warnings = append(p.warnings, f.name+" is "+f.has+" and cannot be changed")
		}
	}
}

// address plans the elastic address of the instance.
func (i *instancePresent) address(ctx context.Context, p *plan, a *account, has *types.Instance) error {
	want := i.PublicIP + i.AllocationID
	now := sdk.ToString(has.PublicIpAddress)
	switch {
	case want == "" && !i.Allocate, i.PublicIP != "" && now == i.PublicIP, i.Allocate && now != "" && elastic(has):
		return nil
	case i.Allocate:
		want = later
	case i.AllocationID != "":
		if same, err := holds(ctx, a, has, i.AllocationID); same || err != nil {
			return err
		}
	}
	p.differ("public_ip", now, want)
	p.then("elastic address associated", func(ctx context.Context) error {
		instance, err := i.find(ctx, a)
		if err != nil || instance == nil {
			return errors.Join(err, missing("instance", i.title(), "boto_ec2.instance_present"))
		}
		client, in := ec2Of(a), &ec2.AssociateAddressInput{InstanceId: instance.InstanceId,
			AllocationId: optional(i.AllocationID), PublicIp: optional(i.PublicIP)}
		if i.Allocate {
			out, err := client.AllocateAddress(ctx, &ec2.AllocateAddressInput{Domain: types.DomainTypeVpc})
			if err != nil {
				return failed("allocating an address for instance", i.title(), err)
			}
			in.AllocationId = out.AllocationId
		}
		_, err = client.AssociateAddress(ctx, in)
		return failed("associating an address with instance", i.title(), err)
	})
	return nil
}

// elastic reports whether the public address of an instance is one of the account's own.
func elastic(has *types.Instance) bool {
	return slices.ContainsFunc(has.NetworkInterfaces, func(n types.InstanceNetworkInterface) bool {
		return n.Association != nil && sdk.ToString(n.Association.IpOwnerId) != "amazon"
	})
}

// holds reports whether an instance has the address of an allocation.
func holds(ctx context.Context, a *account, has *types.Instance, allocation string) (bool, error) {
	out, err := ec2Of(a).DescribeAddresses(ctx, &ec2.DescribeAddressesInput{AllocationIds: []string{allocation}})
	if err != nil {
		return false, failed("reading the address", allocation, err)
	}
	return len(out.Addresses) > 0 && has.InstanceId != nil &&
		sdk.ToString(out.Addresses[0].InstanceId) == *has.InstanceId, nil
}

// instanceAbsent is boto_ec2.instance_absent.
type instanceAbsent struct {
	instanceNamed
	Release bool       `sls:"release_eip"`
	Filters *value.Map `sls:"filters"`
}

// Check implements module.Resource.
func (i *instanceAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return i.check(i.look(ctx))
}

func (i *instanceAbsent) look(ctx context.Context) (*plan, error) {
	a, err := i.cloud.account(ctx, "ec2", i.Account)
	if err != nil {
		return nil, err
	}
	p := newPlan()
	var more []types.Filter
	for key, v := range i.Filters.All() {
		more = append(more, types.Filter{Name: sdk.String(value.Str(key)), Values: texts(v)})
	}
	all, err := instancesOf(ctx, a, i.title(), i.InstanceID, more...)
	switch {
	case err != nil || len(all) == 0:
		return p, err
	case len(all) > 1:
		return nil, diag.WithHint(fmt.Errorf("%d instances are meant by %s", len(all), i.title()), "give instance_id")
	}
	has, client := all[0], ec2Of(a)
	p.remove(value.NewMap("instance", i.title(), "instance_id", sdk.ToString(has.InstanceId)))
	protected, err := client.DescribeInstanceAttribute(ctx, &ec2.DescribeInstanceAttributeInput{InstanceId: has.InstanceId,
		Attribute: types.InstanceAttributeNameDisableApiTermination})
	if err != nil {
		return nil, failed("reading instance", i.title(), err)
	}
	if protected.DisableApiTermination != nil && sdk.ToBool(protected.DisableApiTermination.Value) {
		return nil, diag.WithHint(fmt.Errorf("instance %s is protected against termination", i.title()),
			"set disable_api_termination: False first")
	}
	var allocations []string
	if i.Release {
		out, err := client.DescribeAddresses(ctx,
			&ec2.DescribeAddressesInput{Filters: []types.Filter{{Name: sdk.String("instance-id"),
				Values: []string{*has.InstanceId}}}})
		if err != nil {
			return nil, failed("reading the addresses of instance", i.title(), err)
		}
		for _, one := range out.Addresses {
			allocations = append(allocations, sdk.ToString(one.AllocationId))
		}
	}
	p.then("instance terminated", func(ctx context.Context) error {
		if _, err := client.TerminateInstances(ctx,
			&ec2.TerminateInstancesInput{InstanceIds: []string{*has.InstanceId}}); err != nil {
			return failed("terminating instance", i.title(), err)
		}
		return waitFor(ctx, "instance "+i.title()+" is gone", 20*time.Minute, func(ctx context.Context) (bool, error) {
			left, err := instancesOf(ctx, a, "", *has.InstanceId)
			return len(left) == 0, err
		})
	})
	for _, id := range allocations {
		p.then("address released", func(ctx context.Context) error {
			_, err := client.ReleaseAddress(ctx, &ec2.ReleaseAddressInput{AllocationId: &id})
			return failed("releasing an address of instance", i.title(), err)
		})
	}
	return p, nil
}

// imageCreated is boto_ec2.snapshot_created: an image of an instance.
type imageCreated struct {
	common
	Name     string `sls:"name"`
	Image    string `sls:"ami_name,required"`
	Instance string `sls:"instance_name,required"`
	Wait     bool   `sls:"wait_until_available"`
	Longest  int    `sls:"wait_timeout_seconds"`
}

// Check implements module.Resource.
func (s *imageCreated) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return s.check(s.look(ctx))
}

func imageNamed(ctx context.Context, a *account, name string) (*types.Image, error) {
	out, err := ec2Of(a).DescribeImages(ctx, &ec2.DescribeImagesInput{Owners: []string{"self"},
		Filters: []types.Filter{{Name: sdk.String("name"), Values: []string{name}}}})
	if err != nil || len(out.Images) == 0 {
		return nil, failed("looking for image", name, err)
	}
	return &out.Images[0], nil
}

func (s *imageCreated) look(ctx context.Context) (*plan, error) {
	a, err := s.cloud.account(ctx, "ec2", s.Account)
	if err != nil {
		return nil, err
	}
	p := newPlan()
	has, err := imageNamed(ctx, a, s.Image)
	if has != nil || err != nil {
		return p, err
	}
	all, err := instancesOf(ctx, a, s.Instance, "")
	switch {
	case err != nil:
		return nil, err
	case len(all) == 0 && !a.expects("instance", s.Instance):
		return nil, missing("instance", s.Instance, "boto_ec2.instance_present")
	}
	p.create(value.NewMap("image", s.Image, "instance", s.Instance))
	p.then("image made", func(ctx context.Context) error {
		all, err := instancesOf(ctx, a, s.Instance, "")
		if err != nil || len(all) == 0 {
			return errors.Join(err, missing("instance", s.Instance, "boto_ec2.instance_present"))
		}
		if _, err := ec2Of(a).CreateImage(ctx, &ec2.CreateImageInput{InstanceId: all[0].InstanceId, Name: &s.Image}); err !=
			nil {
			return failed("making image", s.Image, err)
		}
		if !s.Wait {
			return nil
		}
		return waitFor(ctx, "image "+s.Image+" is available", time.Duration(s.Longest)*time.Second,
			func(ctx context.Context) (bool, error) {
				now, err := imageNamed(ctx, a, s.Image)
				return now != nil && now.State == types.ImageStateAvailable, err
			})
	})
	return p, nil
}
