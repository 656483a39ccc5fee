package aws_test

import (
	"strconv"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

func (s *machines) answerVolumes(in any) (any, error) {
	switch in := in.(type) {
	case *ec2.CreateVolumeInput:
		id := s.id("vol")
		s.volumes[id] = &machineVolume{Volume: types.Volume{VolumeId: &id, Size: in.Size, VolumeType: in.VolumeType,
			Iops: in.Iops, Encrypted: in.Encrypted, SnapshotId: in.SnapshotId, State: types.VolumeStateCreating,
			Tags: tagged(in.TagSpecifications)}, changes: lag{s.lag}, then: types.VolumeStateAvailable}
		return &ec2.CreateVolumeOutput{VolumeId: &id}, nil
	case *ec2.DescribeVolumesInput:
		var list []types.Volume
		for _, v := range sortedBy(s.volumes) {
			if v.changes.over() && v.then != "" {
				v.State, v.then = v.then, ""
				if v.State == types.VolumeStateAvailable {
					v.Attachments = nil
				}
			}
			of := map[string]string{"volume-id": *v.VolumeId, "status": string(v.State),
				"size": strconv.Itoa(int(sdk.ToInt32(v.Size)))}
			for _, at := range v.Attachments {
				of["attachment.instance-id"], of["attachment.device"] = *at.InstanceId, *at.Device
			}
			if matches(in.Filters, v.Tags, of) {
				list = append(list, v.Volume)
			}
		}
		shown, next := page(list, in.NextToken)
		return &ec2.DescribeVolumesOutput{Volumes: shown, NextToken: next}, nil
	case *ec2.ModifyVolumeInput:
		v := s.volumes[*in.VolumeId]
		if v == nil {
			return nil, fault("InvalidVolume.NotFound")
		}
		if in.Size != nil {
			v.Size = in.Size
		}
		if in.VolumeType != "" {
			v.VolumeType = in.VolumeType
		}
		if in.Iops != nil {
			v.Iops = in.Iops
		}
		return &ec2.ModifyVolumeOutput{}, nil
	}
	return nil, nil
}

func (s *machines) answerAttachments(in any) (any, error) {
	switch in := in.(type) {
	case *ec2.AttachVolumeInput:
		v := s.volumes[*in.VolumeId]
		if m, err := s.one(*in.InstanceId); err != nil || m.State.Name == types.InstanceStateNamePending {
			return nil, fault("IncorrectState")
		}
		if v.State != types.VolumeStateAvailable {
			return nil, fault("VolumeInUse")
		}
		v.Attachments = []types.VolumeAttachment{{InstanceId: in.InstanceId, Device: in.Device}}
		v.then, v.changes = types.VolumeStateInUse, lag{s.lag}
		return &ec2.AttachVolumeOutput{}, nil
	case *ec2.DetachVolumeInput:
		v := s.volumes[*in.VolumeId]
		if v.State != types.VolumeStateInUse {
			return nil, fault("IncorrectState")
		}
		v.then, v.changes = types.VolumeStateAvailable, lag{s.lag}
		return &ec2.DetachVolumeOutput{}, nil
	case *ec2.DeleteVolumeInput:
		if s.volumes[*in.VolumeId].State != types.VolumeStateAvailable {
			return nil, fault("VolumeInUse")
		}
		delete(s.volumes, *in.VolumeId)
		return &ec2.DeleteVolumeOutput{}, nil
	}
	return nil, nil
}
