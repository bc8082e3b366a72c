package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"baton/core/room"
)

// The error types that OpenAI clients know.
const (
	TypeInvalid     = "invalid_request_error"
	TypeNotFound    = "not_found_error"
	TypeOverloaded  = "overloaded_error"
	TypeTimeout     = "timeout_error"
	TypeServer      = "server_error"
	TypeUnavailable = "service_unavailable_error"
)

// Error is a refusal or a failure in the shape that OpenAI clients parse. Param names the
// field that is wrong, Code is for programs: for a failure it is the cause of the outcome.
type Error struct {
	Status     int           // HTTP status, if nothing was sent yet
	RetryAfter time.Duration // when to come again; 0 is no hint
	Message    string
	Type       string
	Param      string // "" is null on the wire
	Code       string // "" is null on the wire
	RequestID  string // "" leaves the field out
}

func (e *Error) Error() string { return "openai: " + e.Message }

// MarshalJSON prints {"error":{message,type,param,code}}, with the request's id inside.
func (e *Error) MarshalJSON() ([]byte, error) {
	type inner struct {
		Message   string  `json:"message"`
		Type      string  `json:"type"`
		Param     *string `json:"param"`
		Code      *string `json:"code"`
		RequestID string  `json:"request_id,omitempty"`
	}
	return json.Marshal(struct {
		Error inner `json:"error"`
	}{inner{e.Message, e.Type, orNull(e.Param), orNull(e.Code), e.RequestID}})
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// invalid refuses the value of one field.
func invalid(param, code, format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Type: TypeInvalid, Param: param, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Codes of refusals.
const (
	CodeType        = "invalid_type"
	CodeValue       = "invalid_value"
	CodeUnsupported = "unsupported_value"
	CodeMissing     = "missing_required_parameter"
	CodeContext     = "context_length_exceeded"
	CodeJSON        = "invalid_json"
	CodeModel       = "model_not_found"
)

// TooLarge refuses a body of more than max bytes.
func TooLarge(max int64) *Error {
	return &Error{Status: http.StatusRequestEntityTooLarge, Type: TypeInvalid, Code: "request_too_large",
		Message: fmt.Sprintf("the request body is larger than %d bytes; send less, or raise the server's --body-bytes", max)}
}

// NoSuchModel refuses a model that is not served here.
func NoSuchModel(name, served string) *Error {
	return &Error{Status: http.StatusNotFound, Type: TypeNotFound, Param: "model", Code: CodeModel,
		Message: fmt.Sprintf("model %q is not served here; %q is (GET /v1/models)", name, served)}
}

// Failure is the error of a request that was accepted and did not succeed. Before the first
// byte its Status counts; afterwards it is the stream's last event. after is how long the
// client is asked to wait where waiting helps.
func Failure(o room.Outcome, detail string, after time.Duration) *Error {
	e := &Error{Code: o.Cause.String()}
	switch o.Cause {
	case room.ClientError:
		e.Status, e.Type, e.Message = http.StatusBadRequest, TypeInvalid, "the request was refused by a worker"
	case room.Cancelled:
		e.Status, e.Type, e.Message = StatusClientGone, TypeInvalid, "the request was cancelled"
	case room.Overload:
		e.Status, e.Type, e.RetryAfter, e.Message = http.StatusTooManyRequests, TypeOverloaded, after, "the server is full"
	case room.Deadline:
		e.Status, e.Type, e.Message = http.StatusGatewayTimeout, TypeTimeout, "the request's time was over"
	case room.WorkerLost:
		e.Status, e.Type, e.RetryAfter, e.Message = http.StatusBadGateway, TypeServer, after, "a worker was lost"
	case room.TransferFailed:
		e.Status, e.Type, e.RetryAfter, e.Message = http.StatusBadGateway, TypeServer, after, "the KV cache could not be moved between workers"
	default:
		e.Status, e.Type, e.Code, e.Message = http.StatusInternalServerError, TypeServer, room.Internal.String(), "internal error"
	}
	if detail != "" {
		e.Message += ": " + detail
	}
	return e
}

// Cause is the word for the error in logs, where a refusal stands beside outcomes.
func (e *Error) Cause() room.Cause {
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return room.Overload
	case StatusClientGone:
		return room.Cancelled
	case http.StatusGatewayTimeout:
		return room.Deadline
	}
	if e.Status >= http.StatusInternalServerError {
		return room.Internal
	}
	return room.ClientError
}

// StatusClientGone is nginx's number for a client that left; it stands in logs and metrics,
// nobody is there to receive it.
const StatusClientGone = 499
