package aws_test

import (
	"encoding/json"
	"strconv"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// templates imitates launch templates and their versions.
type templates struct {
	all map[string][]types.LaunchTemplateVersion
}

func newTemplates() *templates {
	return &templates{all: map[string][]types.LaunchTemplateVersion{}}
}

func (s *templates) answer(in any) (any, error) {
	switch in := in.(type) {
	case *ec2.DescribeLaunchTemplateVersionsInput:
		all := s.all[*in.LaunchTemplateName]
		if all == nil {
			return nil, fault("InvalidLaunchTemplateName.NotFoundException")
		}
		return &ec2.DescribeLaunchTemplateVersionsOutput{LaunchTemplateVersions: all[len(all)-1:]}, nil
	case *ec2.CreateLaunchTemplateInput:
		if s.all[*in.LaunchTemplateName] != nil {
			return nil, fault("InvalidLaunchTemplateName.AlreadyExistsException")
		}
		_, err := s.add(in.LaunchTemplateName, in.LaunchTemplateData)
		return &ec2.CreateLaunchTemplateOutput{}, err
	case *ec2.CreateLaunchTemplateVersionInput:
		if s.all[*in.LaunchTemplateName] == nil {
			return nil, fault("InvalidLaunchTemplateName.NotFoundException")
		}
		v, err := s.add(in.LaunchTemplateName, in.LaunchTemplateData)
		return &ec2.CreateLaunchTemplateVersionOutput{LaunchTemplateVersion: v}, err
	case *ec2.ModifyLaunchTemplateInput:
		for i, v := range s.all[*in.LaunchTemplateName] {
			s.all[*in.LaunchTemplateName][i].DefaultVersion =
				sdk.Bool(strconv.FormatInt(*v.VersionNumber, 10) == *in.DefaultVersion)
		}
		return &ec2.ModifyLaunchTemplateOutput{}, nil
	case *ec2.DeleteLaunchTemplateInput:
		delete(s.all, *in.LaunchTemplateName)
		return &ec2.DeleteLaunchTemplateOutput{}, nil
	}
	return nil, nil
}

// add adds a version. The types of the request and of the answer have fields of the same names.
func (s *templates) add(name *string, data *types.RequestLaunchTemplateData) (*types.LaunchTemplateVersion, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	v := types.LaunchTemplateVersion{LaunchTemplateName: name, LaunchTemplateData: &types.ResponseLaunchTemplateData{},
		VersionNumber: sdk.Int64(int64(len(s.all[*name]) + 1)), DefaultVersion: sdk.Bool(len(s.all[*name]) == 0)}
	if err := json.Unmarshal(text, v.LaunchTemplateData); err != nil {
		return nil, err
	}
	s.all[*name] = append(s.all[*name], v)
	return &v, nil
}
