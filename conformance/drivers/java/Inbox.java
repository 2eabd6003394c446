import com.alibaba.fastjson.JSONObject;
import java.util.ArrayList;
import java.util.List;

/** What came to a client, in its order; a reader waits until there is enough of it. */
final class Inbox {
    private final List<JSONObject> items = new ArrayList<>();

    synchronized void add(JSONObject item) {
        items.add(item);
        notifyAll();
    }

    synchronized List<JSONObject> await(JSONObject request) throws InterruptedException {
        int from = request.getIntValue("from");
        int wanted = from + request.getIntValue("atLeast");
        long deadline = System.currentTimeMillis() + request.getLongValue("withinMs");
        while (items.size() < wanted) {
            long left = deadline - System.currentTimeMillis();
            if (left <= 0) {
                break;
            }
            wait(left);
        }
        return new ArrayList<>(items.subList(Math.min(from, items.size()), items.size()));
    }
}
