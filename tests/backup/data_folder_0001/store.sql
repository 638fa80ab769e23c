BEGIN TRANSACTION;
CREATE TABLE agents (
	pk INTEGER NOT NULL, 
	agent_id TEXT NOT NULL, 
	scope_pk INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	role TEXT NOT NULL, 
	archived BOOLEAN NOT NULL, 
	parent_pk INTEGER, 
	CONSTRAINT pk_agents PRIMARY KEY (pk), 
	CONSTRAINT uq_agents_agent_id_scope_pk UNIQUE (agent_id, scope_pk), 
	CONSTRAINT fk_agents_scope_pk FOREIGN KEY(scope_pk) REFERENCES scopes (pk), 
	CONSTRAINT fk_agents_parent_pk FOREIGN KEY(parent_pk) REFERENCES agents (pk)
);
INSERT INTO "agents" VALUES(1,'reviewer-1',1,'reviewer-1','reviewer',0,NULL);
INSERT INTO "agents" VALUES(2,'worker',1,'Worker','implementer',0,NULL);
INSERT INTO "agents" VALUES(3,'child',1,'child','implementer',1,2);
INSERT INTO "agents" VALUES(4,'other',2,'other','implementer',0,NULL);
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE changes (
	number INTEGER NOT NULL, 
	kind VARCHAR(20) NOT NULL, 
	conversation_pk INTEGER NOT NULL, 
	turn_number INTEGER NOT NULL, 
	replaces INTEGER NOT NULL, 
	CONSTRAINT pk_changes PRIMARY KEY (number), 
	CONSTRAINT fk_changes_conversation_pk FOREIGN KEY(conversation_pk) REFERENCES conversations (pk)
);
INSERT INTO "changes" VALUES(1,'put',1,1,0);
INSERT INTO "changes" VALUES(2,'put',1,2,0);
INSERT INTO "changes" VALUES(3,'put',1,3,0);
INSERT INTO "changes" VALUES(4,'put',2,4,0);
INSERT INTO "changes" VALUES(5,'put',3,5,0);
INSERT INTO "changes" VALUES(6,'forget_conversation',3,0,0);
INSERT INTO "changes" VALUES(7,'put',4,7,0);
CREATE TABLE conversations (
	pk INTEGER NOT NULL, 
	agent_pk INTEGER NOT NULL, 
	conversation_id TEXT NOT NULL, 
	title TEXT NOT NULL, 
	source_format TEXT NOT NULL, 
	source_file TEXT NOT NULL, 
	source_project TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	created_at INTEGER NOT NULL, 
	updated_at INTEGER NOT NULL, 
	turn_count INTEGER NOT NULL, 
	content_length INTEGER NOT NULL, 
	tombstoned_at INTEGER, 
	CONSTRAINT pk_conversations PRIMARY KEY (pk), 
	CONSTRAINT uq_conversations_conversation_id_agent_pk UNIQUE (conversation_id, agent_pk), 
	CONSTRAINT fk_conversations_agent_pk FOREIGN KEY(agent_pk) REFERENCES agents (pk)
);
INSERT INTO "conversations" VALUES(1,2,'monday','','','','',1,1796072985631584,1796072985631584,3,73,NULL);
INSERT INTO "conversations" VALUES(2,3,'tuesday','','','','',1,1796072985640010,1796072985640010,1,18,NULL);
INSERT INTO "conversations" VALUES(3,2,'gone','','','','',1,1796072985645903,1796072985645903,0,0,1796072985650230);
INSERT INTO "conversations" VALUES(4,4,'scoped','','','','',1,1796072985659380,1796072985659380,1,23,NULL);
CREATE TABLE log (
	only INTEGER NOT NULL, 
	head INTEGER NOT NULL, 
	CONSTRAINT pk_log PRIMARY KEY (only), 
	CONSTRAINT ck_log_one_row CHECK (only = 1)
);
INSERT INTO "log" VALUES(1,7);
CREATE TABLE parts (
	turn_number INTEGER NOT NULL, 
	place INTEGER NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	text TEXT NOT NULL, 
	name TEXT NOT NULL, 
	call_id TEXT NOT NULL, 
	media_type TEXT NOT NULL, 
	is_error BOOLEAN NOT NULL, 
	CONSTRAINT pk_parts PRIMARY KEY (turn_number, place), 
	CONSTRAINT fk_parts_turn_number FOREIGN KEY(turn_number) REFERENCES turns (number)
);
INSERT INTO "parts" VALUES(1,0,'text','The zebra crossing is closed.','','','',0);
INSERT INTO "parts" VALUES(2,0,'reasoning','hm','','','',0);
INSERT INTO "parts" VALUES(2,1,'tool_call','{"pattern": "zebra"}','grep','c1','',0);
INSERT INTO "parts" VALUES(3,0,'tool_result_text','crossing.txt: zebra','','c1','',0);
INSERT INTO "parts" VALUES(4,0,'text','Zebras everywhere','','','',0);
INSERT INTO "parts" VALUES(7,0,'text','A zebra within a scope','','','',0);
CREATE TABLE read_scopes (
	"key" TEXT NOT NULL, 
	value TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	CONSTRAINT pk_read_scopes PRIMARY KEY ("key", value, number), 
	CONSTRAINT fk_read_scopes_number FOREIGN KEY(number) REFERENCES reads (number)
)
 WITHOUT ROWID

;
CREATE TABLE read_targets (
	number INTEGER NOT NULL, 
	place INTEGER NOT NULL, 
	agent_id TEXT NOT NULL, 
	agent_pk INTEGER, 
	CONSTRAINT pk_read_targets PRIMARY KEY (number, place), 
	CONSTRAINT fk_read_targets_number FOREIGN KEY(number) REFERENCES reads (number), 
	CONSTRAINT fk_read_targets_agent_pk FOREIGN KEY(agent_pk) REFERENCES agents (pk)
);
INSERT INTO "read_targets" VALUES(1,0,'child',3);
CREATE TABLE reads (
	number INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	mac BLOB NOT NULL, 
	CONSTRAINT pk_reads PRIMARY KEY (number)
);
INSERT INTO "reads" VALUES(1,'{"before":"0000000000000000000000000000000000000000000000000000000000000000","caller":"reviewer-1","caller_pk":1,"door":"connect","filters":{"agent_id":"child"},"granted":true,"later_page":false,"method":"SearchTranscripts","number":1,"query_hash":"e4a9b315eb49d246266e2bb514ad00e55be7f8429380a74b5a53360082d5b827","reason":"was it said?","request_id":"de2ab3178b9fe5ec","role":"reviewer","scope":{},"targets":[["child",3]],"time":1796072985670196,"turns":[[3,"tuesday:0"]]}',X'F3F6B7A2F22C270359D7002264A6C110F6675FA16E7142B80076E0D6B939E290');
CREATE TABLE scope_pairs (
	"key" TEXT NOT NULL, 
	value TEXT NOT NULL, 
	scope_pk INTEGER NOT NULL, 
	CONSTRAINT pk_scope_pairs PRIMARY KEY ("key", value, scope_pk), 
	CONSTRAINT fk_scope_pairs_scope_pk FOREIGN KEY(scope_pk) REFERENCES scopes (pk)
)
 WITHOUT ROWID

;
INSERT INTO "scope_pairs" VALUES('user_id','ada',2);
CREATE TABLE scopes (
	pk INTEGER NOT NULL, 
	pairs TEXT NOT NULL, 
	digest BLOB NOT NULL, 
	CONSTRAINT pk_scopes PRIMARY KEY (pk), 
	CONSTRAINT uq_scopes_digest UNIQUE (digest)
);
INSERT INTO "scopes" VALUES(1,'{}',X'44136FA355B3678A1146AD16F7E8649E94FB4FC21FE77E8310C060F61CAAFF8A');
INSERT INTO "scopes" VALUES(2,'{"user_id":"ada"}',X'375DCF07A9F30AF08ABBC5E5EF4A6DC0BD1321D288799DC561AD7F05F8EEE14C');
CREATE TABLE turns (
	number INTEGER NOT NULL, 
	conversation_pk INTEGER NOT NULL, 
	turn_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	role TEXT NOT NULL, 
	created_at INTEGER NOT NULL, 
	content_offset INTEGER NOT NULL, 
	content_length INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	logged INTEGER NOT NULL, 
	CONSTRAINT pk_turns PRIMARY KEY (number), 
	CONSTRAINT uq_turns_conversation_pk_turn_id UNIQUE (conversation_pk, turn_id), 
	CONSTRAINT uq_turns_conversation_pk_seq UNIQUE (conversation_pk, seq), 
	CONSTRAINT fk_turns_conversation_pk FOREIGN KEY(conversation_pk) REFERENCES conversations (pk)
);
INSERT INTO "turns" VALUES(1,1,'monday:0',0,'user',1796072985631584,0,29,X'DEBD9098D365B3ED5B4834E2DB4B9F957A226E15C646C6BE78D1A99B81AB0886',1);
INSERT INTO "turns" VALUES(2,1,'m2',1,'assistant',1767323045000000,30,22,X'950A87CFB291F6820A8B02D098F5D8BE821AAA2DF85C58A313288A8C374511E1',2);
INSERT INTO "turns" VALUES(3,1,'m3',2,'tool',1796072985631584,53,19,X'223D0CE8945E483FDAC8B5722E75F70D0EB0E646CDCE986D8B633F303CA3A938',3);
INSERT INTO "turns" VALUES(4,2,'tuesday:0',0,'user',1796072985640010,0,17,X'A12CE0EC3FEBC358460E7DAB117731F1C75095847D643CFF52ED7A50BD3F94CD',4);
INSERT INTO "turns" VALUES(7,4,'scoped:0',0,'user',1796072985659380,0,22,X'9FC6DE1B6EB099D97B7A9306FE2D63DE7AFF9088033B2D30C2C51D2E3412B870',7);
CREATE INDEX ix_agents_scope_pk ON agents (scope_pk);
CREATE INDEX ix_agents_parent_pk ON agents (parent_pk);
CREATE INDEX ix_conversations_agent_pk_updated_at ON conversations (agent_pk, updated_at);
CREATE INDEX ix_conversations_updated_at_pk ON conversations (updated_at, pk);
CREATE INDEX ix_turns_conversation_pk_content_offset ON turns (conversation_pk, content_offset);
CREATE INDEX ix_read_targets_agent_id_number ON read_targets (agent_id, number);
CREATE INDEX ix_read_targets_agent_pk_number ON read_targets (agent_pk, number);
COMMIT;
