package scenario

// Elsewhere names tests of other packages that prove an entry, "package Test".
var Elsewhere = map[string][]string{
	"F28":  {"transfer/tcp TestConformance", "transfer/fake TestConformance"},
	"F58":  {"proof/chaos TestWorkersThatDoNotMatchRefuseEachOther"},
	"F59":  {"engine/model TestManifestsDifferByEveryField", "serve/worker TestAnotherLayoutIsRefusedWithBothManifests"},
	"F81":  {"serve/worker TestHealthMeansProgress", "serve/worker TestAWaitBeforeTheWorkIsNoLackOfProgress"},
	"F82":  {"serve/worker TestHealthMeansProgress", "serve/fleet TestAFrozenWorkerIsTakenOutAndReplaced"},
	"F84":  {"proof/chaos TestStorm"},
	"F85":  {"serve/fleet TestLegsAtAFrozenWorkerEndWithIt"},
	"F86":  {"serve/worker TestHealthMeansProgress", "serve/fleet TestAFrozenWorkerIsTakenOutAndReplaced"},
	"F101": {"serve/worker TestCloseEndsLiveRooms"},
	"F106": {"serve/gateway TestASilentStreamIsKeptAliveByComments"},
	"F107": {"proof/chaos TestClientsThatLeaveLeaveNothing"},
	"F118": {"serve/gateway TestAClientThatDoesNotReadIsGivenUp", "serve/worker TestASlowReaderLosesItsRoomAndStallsNobody"},
	"F132": {"serve/worker TestAnswersUnderPressureAreThoseWithout", "serve/worker TestEveryFeatureThroughAPairIsThatOfOneWorker"},
	"F131": {"serve/worker TestSampledTokensAndLogprobsSurviveTheHandOff", "serve/worker TestSideDataFromALinkIsChecked"},
}

// Unfit says of an entry why it cannot happen here.
var Unfit = map[string]string{
	"F87": "a probe asks the address that the worker itself printed when it was ready; there is no lookup that could lag behind",
}

// Missing names the part that an entry needs and that does not exist yet. Its test is there and
// skipped.
var Missing = map[string]string{
	"F05":  "sharded ranks",
	"F06":  "sharded ranks",
	"F57":  "a KV store beside the workers",
	"F68":  "sharded ranks",
	"F83":  "a discovery service",
	"F100": "migration",
	"F111": "load reports to the gateway",
	"F113": "the gateway's prefix index",
	"F116": "several models behind one gateway",
	"F124": "late reservation on decode",
	"F126": "sharded ranks",
}

// Partly names the part that one half of an entry still waits for; the other half is proven.
var Partly = map[string]string{
	"F11":  "a place in host memory for the KV of retracted rooms",
	"F15":  "several gateways",
	"F23":  "sharded ranks",
	"F31":  "sharded ranks",
	"F32":  "several gateways",
	"F40":  "a circuit breaker with its pause and probe",
	"F47":  "sharded ranks",
	"F48":  "more than one engine step under way",
	"F50":  "a policy that lets decode compute what did not arrive",
	"F53":  "a policy that lets decode compute what did not arrive",
	"F73":  "tenants",
	"F74":  "a signature between gateway and workers",
	"F88":  "a generation through each new pair before it is ready",
	"F89":  "a circuit breaker with its pause and probe",
	"F94":  "a policy that lets decode prefill",
	"F95":  "migration of what a drain cannot wait for",
	"F101": "an abort-all for operators",
	"F114": "several gateways",
	"F119": "tenants",
	"F132": "drafts",
	"F133": "times per stage",
	"F135": "a refusal at arrival, by an estimate",
}
