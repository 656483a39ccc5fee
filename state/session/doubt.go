package session

import "github.com/corpus-agent/corpus-agent/state/diag"

// Doubt watches what reads the host from now on, for errors of the machine that templates, functions and modules may
// take for an answer: a file that could not be read for lack of open files is not absent. The function that it returns
// joins such an error to the one that the caller has, if any.
func (s *Session) Doubt() func(err error) error {
	mark := s.Host.Mark()
	return func(err error) error {
		trouble := s.Host.TroubleSince(mark)
		if trouble == nil {
			return err
		}
		var problems diag.List
		problems.AddError(diag.Pos{}, trouble)
		problems.AddError(diag.Pos{}, err)
		return problems.Err()
	}
}
