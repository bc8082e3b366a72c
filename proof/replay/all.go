package replay

import (
	"errors"
	"fmt"
	"path/filepath"

	"baton/serve/recorder"
)

// All replays every trace of a directory. The error says what is wrong with any: with those that
// cannot be read, those that differ, with the life of their rooms, those from which events are
// missing, and what was heard that nobody said. A directory without traces is an error too, for
// it shows nothing.
func All(dir string) (reports []*Report, mail Delivery, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+recorder.Suffix))
	if err != nil || len(files) == 0 {
		return nil, mail, errors.Join(err, fmt.Errorf("replay: no trace in %s", dir))
	}
	var wrong []error
	post := NewPost()
	for _, file := range files {
		r, err := post.Watch(file)
		switch {
		case err != nil:
			wrong = append(wrong, err)
			continue
		case r.Differs != nil:
			chart, err := r.Differs.Draw(r)
			wrong = append(wrong, fmt.Errorf("replay: %s\n%s", r, chart), err)
		case r.End == recorder.EndOverrun || r.Panic != "":
			wrong = append(wrong, fmt.Errorf("replay: %s", r))
		}
		reports = append(reports, r)
	}
	if mail = post.Judge(); len(mail.Unsaid) > 0 {
		wrong = append(wrong, fmt.Errorf("replay: %s", mail))
	}
	return reports, mail, errors.Join(wrong...)
}
