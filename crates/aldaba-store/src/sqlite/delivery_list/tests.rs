use super::*;
use crate::sqlite::plan::plan;

#[test]
fn no_list_is_sorted_or_read_from_its_beginning() {
    for order in [Order::Ascending, Order::Descending] {
        let beyond = Direction::of(order).beyond;
        for column in ["org", "app", "endpoint"] {
            assert_eq!(
                plan(&dead_statement(column, order)),
                format!(
                    "MERGE (UNION ALL); LEFT; SEARCH dead_letter USING INDEX dead_letter_{column} \
                     ({column}=? AND settled_at=? AND rowid{beyond}?); RIGHT; \
                     SEARCH dead_letter USING INDEX dead_letter_{column} ({column}=? AND settled_at{beyond}?)"
                )
            );
        }
        assert_eq!(
            plan(&pending_statement(order, OF_ENDPOINT)),
            format!(
                "MERGE (UNION ALL); LEFT; SEARCH delivery USING INDEX delivery_lane \
                 (endpoint=? AND due_at=? AND rowid{beyond}?); RIGHT; \
                 SEARCH delivery USING INDEX delivery_lane (endpoint=? AND due_at{beyond}?)"
            )
        );
        assert_eq!(
            plan(&pending_statement(order, DISPATCHED)),
            format!(
                "MERGE (UNION ALL); LEFT; SEARCH delivery USING INDEX delivery_dispatched_due \
                 (app=? AND due_at=? AND rowid{beyond}?); RIGHT; \
                 SEARCH delivery USING INDEX delivery_dispatched_due (app=? AND due_at{beyond}?)"
            )
        );
        let (messages, deliveries) = message_statements(order, false);
        assert_eq!(
            plan(&messages),
            format!("SEARCH message USING COVERING INDEX message_app (app=? AND id{beyond}?)")
        );
        assert_eq!(
            plan(&deliveries),
            format!("SEARCH delivery USING INDEX delivery_message (message=? AND rowid{beyond}?)")
        );
    }
}
