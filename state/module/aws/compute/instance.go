package compute

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// instancePresent implements boto_ec2.instance_present.
type instancePresent struct {
	instanceNamed
	Image        string     `sls:"image_id"`
	ImageName    string     `sls:"image_name"`
	ImageOwners  []string   `sls:"image_owners"` // whose images image_name means: self, amazon, or numbers of accounts
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
		return diag.Amazon.Hint(fmt.Errorf("target_state is %s", i.Target), "write running or stopped")
	}
	for _, name := range i.Attributes.Names() {
		if !slices.Contains(instanceAttributes, name) {
			return diag.Amazon.Hint(fmt.Errorf("attributes has no %s", name), "%s", diag.DidYouMean(name, instanceAttributes))
		}
	}
	return nil
}

var instanceAttributes = []string{"disableApiTermination", "instanceInitiatedShutdownBehavior", "sourceDestCheck",
	"ebsOptimized", "instanceType", "userData"}

// Check implements module.Resource.
func (i *instancePresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return i.Planned(i.look(ctx))
}

// fold copies attributes to the arguments with the same meaning.
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
		if v := cloud.Text(i.Attributes, name); v != "" {
			*to = v
		}
	}
}

func (i *instancePresent) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := i.Cloud.Account(ctx, "ec2", i.Arguments)
	if err != nil {
		return nil, err
	}
	i.fold()
	i.InstanceName = a.Call("instance", i.title(), i.Tags)
	p := cloud.NewPlan()
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
			return nil, diag.Resource.Hint(fmt.Errorf("there is no instance %s", i.InstanceID),
				"correct instance_id, or give a name to make one")
		}
		if _, err := i.subnet(ctx, a); err != nil {
			return nil, err
		}
		if err := i.create(ctx, p, a, groups); err != nil {
			return nil, err
		}
		has = &types.Instance{}
	} else if err := i.drift(ctx, p, a, has, groups); err != nil {
		return nil, err
	}
	return p, i.address(ctx, p, a, has)
}

// groups returns the IDs of the security groups of the instance.
func (i *instancePresent) groups(ctx context.Context, a *cloud.Account) ([]string, error) {
	names := slices.Concat(i.Groups, i.GroupNames)
	if len(names) == 0 {
		return i.GroupIDs, nil
	}
	vpc, err := i.vpc(ctx, a)
	if err != nil {
		return nil, err
	}
	ids, err := network.GroupIDs(ctx, a, vpc, names)
	return slices.Concat(i.GroupIDs, ids), err
}

// subnet returns the ID of the subnet, or "" if none is given. A name is that of a subnet of the VPC, if one is given.
func (i *instancePresent) subnet(ctx context.Context, a *cloud.Account) (string, error) {
	if i.SubnetName == "" {
		return i.SubnetID, nil
	}
	vpc := ""
	if i.VPCID+i.VPCName != "" {
		var err error
		if vpc, err = network.VPCOf(ctx, a, i.VPCID, i.VPCName); err != nil {
			return "", err
		}
	}
	return network.SubnetIn(ctx, a, vpc, i.SubnetName)
}

// vpc returns the ID of the VPC of the security groups: that of the arguments, of the subnet, or the default one.
func (i *instancePresent) vpc(ctx context.Context, a *cloud.Account) (string, error) {
	subnet, err := i.subnet(ctx, a)
	switch {
	case err != nil:
		return "", err
	case subnet == "" || i.VPCID+i.VPCName != "":
		return network.VPCOf(ctx, a, i.VPCID, i.VPCName)
	}
	return network.VPCOfSubnets(ctx, a, []string{subnet})
}
