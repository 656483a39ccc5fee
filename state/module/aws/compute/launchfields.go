package compute

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	scaling "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// userDataField sets a field with the digest of user data. A plan does not show user data, which may contain secrets.
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
	cloud.Put(m, "image_id", d.ImageId)
	cloud.Put(m, "key_name", d.KeyName)
	cloud.Put(m, "kernel_id", d.KernelId)
	cloud.Put(m, "ramdisk_id", d.RamDiskId)
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
		m.Set("security_groups", cloud.Sorted(ids))
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
		cloud.Put(m, "spot_price", o.SpotOptions.MaxPrice)
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
	cloud.Put(m, "image_id", l.ImageId)
	cloud.Put(m, "key_name", l.KeyName)
	cloud.Put(m, "kernel_id", l.KernelId)
	cloud.Put(m, "ramdisk_id", l.RamdiskId)
	cloud.Put(m, "instance_type", l.InstanceType)
	cloud.Put(m, "spot_price", l.SpotPrice)
	cloud.Put(m, "instance_profile_name", l.IamInstanceProfile)
	if len(l.SecurityGroups) > 0 {
		m.Set("security_groups", cloud.Sorted(l.SecurityGroups))
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
